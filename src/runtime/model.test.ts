import { expect, test } from 'vitest';
import { createToySampler, toyContinuation, toyLogits } from '../../test/support/toy-model.ts';
import { createToyRuntime, saying } from '../../test/support/toy-runtime.ts';
import { createToyTokenizer } from '../../test/support/toy-tokenizer.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { Sampler, SamplingParams } from '../sampling/types.ts';
import type { GenerateChunk } from './generation-types.ts';

const END = new Set([1]);
const EXAMPLE = { prompt: 'hello', promptIds: createToyTokenizer().encode('hello', { addSpecial: true }) };

async function readAll(stream: AsyncIterable<GenerateChunk>): Promise<GenerateChunk[]> {
  const chunks: GenerateChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

test('generate gives the tokens of the model, their text and the numbers', async () => {
  const { model, tokenizer } = await createToyRuntime();
  const result = await model.generate(EXAMPLE.prompt, { maxTokens: 30, seed: 8 });
  const expected = toyContinuation(EXAMPLE.promptIds, { seed: 8, maxTokens: 30, stopIds: END });
  expect(result.tokenIds).toEqual(expected);
  expect(result.text).toBe(tokenizer.decode(expected));
  expect(result.usage).toEqual({
    promptTokens: 6,
    cachedTokens: 0,
    completionTokens: expected.length,
    totalTokens: 6 + expected.length,
    reasoningTokens: 0,
    acceptedDraftTokens: expect.any(Number) as number,
    rejectedDraftTokens: expect.any(Number) as number,
  });
  expect(result).toMatchObject({
    finishReason: expected.length === 30 ? 'length' : 'stop',
    seed: 8,
    stopString: null,
    logprobs: null,
  });
});

test('the stream, put together, is the result; only its last chunk has a finish reason', async () => {
  const { model } = await createToyRuntime();
  const result = await model.generate(EXAMPLE.prompt, { maxTokens: 40, seed: 3, topLogprobs: 0 });
  const chunks = await readAll(model.generateStream(EXAMPLE.prompt, { maxTokens: 40, seed: 3, topLogprobs: 0 }));
  expect(chunks.map((chunk) => chunk.text).join('')).toBe(result.text);
  expect(chunks.flatMap((chunk) => chunk.tokenIds)).toEqual(result.tokenIds);
  expect(chunks.flatMap((chunk) => chunk.logprobs!)).toEqual(result.logprobs);
  expect(result.logprobs!.map((token) => token.tokenId)).toEqual(result.tokenIds);
  expect(chunks.slice(0, -1).every((chunk) => chunk.finishReason === null)).toBe(true);
  expect(chunks.at(-1)).toMatchObject({
    finishReason: result.finishReason,
    usage: { ...result.usage, cachedTokens: 5 },
    seed: 3,
  });
});

test('without a seed the one drawn is reported, and gives the same text again', async () => {
  const { model } = await createToyRuntime();
  const first = await model.generate('abc', { maxTokens: 20 });
  expect(first.seed).toBe(4711);
  expect((await model.generate('abc', { maxTokens: 20, seed: first.seed })).text).toBe(first.text);
});

test('chats, token ids and ignoreEos', async () => {
  const { model, tokenizer } = await createToyRuntime();
  const chatIds = [0, ...tokenizer.encode('user hi.')];
  const ask = { seed: 5, maxTokens: 60 };
  const chat = await model.generate([{ role: 'user', content: 'hi' }], ask);
  expect(chat.tokenIds).toEqual(toyContinuation(chatIds, { ...ask, stopIds: END }));
  expect((await model.generate(chatIds, ask)).tokenIds).toEqual(chat.tokenIds);
  const through = await model.generate(chatIds, { ...ask, ignoreEos: true });
  expect(through.tokenIds).toEqual(toyContinuation(chatIds, ask));
  expect(through.finishReason).toBe('length');
});

test('an answer to text continues it, an answer to a chat starts anew', async () => {
  const { model } = await createToyRuntime({ createSampler: saying([3, 4, 1]) });
  expect((await model.generate('a')).text).toBe(' a');
  expect((await model.generate([{ role: 'user', content: 'a' }])).text).toBe('a');
});

test('a stop string ends the text before it, across tokens, and frees the sequence', async () => {
  const ids = createToyTokenizer().encode('ab enD END of it');
  const { model } = await createToyRuntime({ createSampler: saying([...ids, ...ids]) });
  const result = await model.generate('x', { stop: ['END'], maxTokens: 30 });
  expect(result).toMatchObject({ text: 'ab enD ', finishReason: 'stop', stopString: 'END' });
  expect(result.usage.completionTokens).toBe(10);
  expect(await model.stats()).toMatchObject({ numRunning: 0, numWaiting: 0, numFreePages: 64 });
});

test('after a stop string the engine stops, though nobody reads on', async () => {
  const ids = createToyTokenizer().encode('abENDx'.repeat(80));
  const { model, toy } = await createToyRuntime({ createSampler: saying(ids) });
  const stream = model.generateStream('x', { stop: ['END'], maxTokens: 400 });
  await stream.next();
  while ((await model.stats()).numRunning > 0);
  expect(toy.batches.length).toBeLessThan(30);
  expect((await readAll(stream)).map((chunk) => chunk.text)).toEqual(['b', '', '', '']);
});

test('a token the tokenizer does not know fails the call, not the process', async () => {
  const { model, tokenizer } = await createToyRuntime({ createSampler: saying([4, 60, 5]) });
  const createStreamDecoder = tokenizer.createStreamDecoder;
  tokenizer.createStreamDecoder = (options) => {
    const decoder = createStreamDecoder(options);
    return {
      ...decoder,
      push(id) {
        if (id === 60) throw new RuvLLMError('invalid_token', 'token id 60 is outside the vocabulary of 60');
        return decoder.push(id);
      },
    };
  };
  await expect(model.generate('x', { maxTokens: 300 })).rejects.toMatchObject({ code: 'invalid_token' });
  expect(await model.stats()).toMatchObject({ numRunning: 0, numFreePages: 64 });
});

test('text held back for a stop string that never comes is given at the end', async () => {
  const ids = createToyTokenizer().encode('the EN');
  const { model } = await createToyRuntime({ createSampler: saying([...ids, 1]) });
  const result = await model.generate('x', { stop: ['END'] });
  expect(result).toMatchObject({ text: 'the EN', finishReason: 'stop', stopString: null });
});

test('a character in two tokens is never cut; half a one at the end shows as U+FFFD', async () => {
  const { model } = await createToyRuntime({ createSampler: saying([4, 2, 2, 5, 2, 1]) });
  const chunks = await readAll(model.generateStream('x'));
  expect(chunks.map((chunk) => chunk.text)).toEqual(['a', '', 'é', 'b', '', '\ufffd']);
});

test('leaving the loop early aborts and frees', async () => {
  const { model, toy } = await createToyRuntime();
  let numChunks = 0;
  for await (const chunk of model.generateStream('abc', { maxTokens: 400, ignoreEos: true })) {
    numChunks += chunk.tokenIds.length;
    if (numChunks === 3) break;
  }
  expect(await model.stats()).toMatchObject({ numRunning: 0, numFreePages: 64 });
  expect(toy.batches.length).toBeLessThan(20);
});

test('a signal aborts with its reason, before or during', async () => {
  const { model } = await createToyRuntime();
  await expect(model.generate('abc', { signal: AbortSignal.abort('no') })).rejects.toMatchObject({
    code: 'aborted',
    cause: 'no',
  });
  const controller = new AbortController();
  const stream = model.generateStream('abc', { maxTokens: 400, ignoreEos: true, signal: controller.signal });
  await stream.next();
  controller.abort('enough');
  await expect(readAll(stream)).rejects.toMatchObject({ code: 'aborted', cause: 'enough' });
  expect(await model.stats()).toMatchObject({ numRunning: 0, numFreePages: 64 });
});

test('a reader that does not read holds at most a chunk a token', async () => {
  const { model } = await createToyRuntime();
  const stream = model.generateStream('abc', { maxTokens: 50, ignoreEos: true, seed: 1 });
  await stream.next();
  while ((await model.stats()).numRunning > 0);
  expect(await readAll(stream)).toHaveLength(50);
});

test('the default of maxTokens shrinks to the context, a given one is refused', async () => {
  const { model } = await createToyRuntime();
  const prompt = 'a'.repeat(500);
  const result = await model.generate(prompt, { ignoreEos: true });
  expect(result.usage).toEqual({
    promptTokens: 501,
    cachedTokens: 0,
    completionTokens: 11,
    totalTokens: 512,
    reasoningTokens: 0,
    acceptedDraftTokens: expect.any(Number) as number,
    rejectedDraftTokens: expect.any(Number) as number,
  });
  await expect(model.generate(prompt, { maxTokens: 12 })).rejects.toMatchObject({
    code: 'context_overflow',
    data: { promptTokens: 501, maxTokens: 12, maxContext: 512 },
  });
  await expect(model.generate('a'.repeat(511))).rejects.toMatchObject({
    code: 'context_overflow',
    message: 'the prompt has 512 tokens; the context holds 512, and the answer needs some of them',
  });
});

test('wrong input is refused by cause', async () => {
  const { model } = await createToyRuntime();
  await expect(model.generate('')).rejects.toMatchObject({ code: 'empty_prompt' });
  await expect(model.generate('\ud800')).rejects.toMatchObject({ code: 'invalid_text' });
  await expect(model.generate([61])).rejects.toMatchObject({ code: 'invalid_token' });
  await expect(model.generate('a', { logitBias: { 61: 1 } })).rejects.toMatchObject({ code: 'invalid_token' });
  await expect(model.generate('a', { temprature: 1 } as object)).rejects.toMatchObject({ code: 'invalid_option' });
  await expect(model.generate('a', { signal: 5 } as object)).rejects.toMatchObject({ code: 'invalid_option' });
  await expect(model.generateStream('').next()).rejects.toMatchObject({ code: 'empty_prompt' });
});

test('bad logits fail the one call, others go on', async () => {
  const poisoned = toyLogits([0, 4, 9]);
  const createSampler = (params: SamplingParams): Sampler => {
    const inner = createToySampler(params.seed!);
    return {
      sample(logits, history) {
        if (history.length === 3 && logits[0] === poisoned[0]) throw new RuvLLMError('bad_logits', 'no finite logit');
        return inner.sample(logits, history);
      },
    };
  };
  const { model } = await createToyRuntime({ createSampler });
  const [bad, good] = await Promise.allSettled([
    model.generate([0, 4, 9], { maxTokens: 9 }),
    model.generate('hello', { maxTokens: 9, seed: 2, ignoreEos: true }),
  ]);
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'bad_logits' } });
  expect(good).toMatchObject({ value: { tokenIds: toyContinuation(EXAMPLE.promptIds, { seed: 2, maxTokens: 9 }) } });
});

test('times come from the engine, the first token also from the call', async () => {
  const { model } = await createToyRuntime();
  const { timings } = await model.generate('abc', { maxTokens: 5, ignoreEos: true });
  const { queuedMs, promptMs, generateMs, firstTokenMs } = timings;
  for (const value of [queuedMs, promptMs, generateMs]) expect(value).toBeGreaterThanOrEqual(0);
  expect(firstTokenMs).toBe(1); // the clock of this test moves by one with each look
  expect(timings.tokensPerSecond).toBe(generateMs > 0 ? 4000 / generateMs : null);
});

test('modelInfo', async () => {
  const { model } = await createToyRuntime();
  expect(model.modelInfo()).toEqual({
    name: 'toy',
    displayName: 'Toy 2.0B Q8_0',
    path: 'toy.gguf',
    architecture: 'toy',
    numParameters: 2e9,
    size: 'small',
    quantization: 'Q8_0',
    canGenerate: true,
    canRerank: false,
    canSeeImages: false,
    embeddingDim: 3,
    pooling: 'mean',
    vocabSize: 61,
    contextLength: 1024,
    maxContext: 512,
    chatTemplate: 'toy',
    fileBytes: 10,
    sampling: { temperature: 0.7, topK: 0, topP: 1, minP: 0.05, repetitionPenalty: 1, source: 'default' },
    memory: { weightBytes: 1, kvBytes: 2, activationBytes: 3, totalBytes: 6 },
    kvPacking: { precision: null, reason: 'a test' },
    kernels: 'toy',
    numThreads: 1,
    loadMs: 5,
  });
});

test('after dispose every call is not_loaded, and those in progress fail so', async () => {
  const { model } = await createToyRuntime();
  const running = model.generate('abc', { maxTokens: 400, ignoreEos: true });
  const disposing = model.dispose();
  await expect(running).rejects.toMatchObject({ code: 'not_loaded' });
  await disposing;
  expect(model.isLoaded()).toBe(false);
  await expect(model.generate('a')).rejects.toMatchObject({ code: 'not_loaded' });
  await expect(model.generateStream('a').next()).rejects.toMatchObject({ code: 'not_loaded' });
  await expect(model.stats()).rejects.toMatchObject({ code: 'not_loaded' });
  expect(() => model.modelInfo()).toThrow(expect.objectContaining({ code: 'not_loaded' }));
  await model[Symbol.asyncDispose]();
});

test('options that are no object are refused, not ignored', async () => {
  const { model } = await createToyRuntime();
  for (const options of [null, 5, 'x', [], () => {}]) {
    await expect(model.generate('a', options as object)).rejects.toMatchObject({ code: 'invalid_option' });
  }
  for (const options of [null, 5, { parseSpecials: true }, { parseSpecial: 1 }]) {
    expect(() => model.encodePrompt('a', options as object)).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    );
  }
});
