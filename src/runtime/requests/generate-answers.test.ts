import { expect, test } from 'vitest';
import { pieceOf } from '../../../test/support/echo-model.ts';
import { settle } from '../../../test/support/manual-clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { TokenProgress } from '../generation-types.ts';
import type { Model } from '../model.ts';
import type { Prompt } from '../prompt.ts';
import { type GenerationRequest, PLAIN_REQUEST, toGrammar } from './generation-request.ts';
import {
  countPromptTokens,
  generateAnswers,
  type GenerationCaller,
  promptOptions,
  toDefinition,
} from './generate-answers.ts';

const JOB: GenerationRequest = {
  ...PLAIN_REQUEST,
  model: 'm',
  prompts: ['a'],
  numChoices: 3,
  options: { maxTokens: 9 },
};
const LIMITS = { maxTokens: 100, maxCharsPerToken: 32 };

/** Says one word in each answer, then nothing until it is aborted. */
function createStuckModel(): { model: Model; numAborted: () => number } {
  let numAborted = 0;
  const model = {
    modelInfo: () => ({ maxContext: 100 }),
    async *generateStream(_prompt: string, { signal }: { signal: AbortSignal }) {
      yield pieceOf('x', 1);
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      numAborted++;
      throw new RuvLLMError('aborted', 'aborted by the caller');
    },
  } as unknown as Model;
  return { model, numAborted: () => numAborted };
}

async function collectUnheard(work: () => Promise<void>): Promise<unknown[]> {
  const unheard: unknown[] = [];
  const hear = (error: unknown): void => void unheard.push(error);
  process.on('unhandledRejection', hear);
  await work();
  await settle();
  process.off('unhandledRejection', hear);
  return unheard;
}

test('[G2] handles answers that fail before they are read: an unhandled rejection would end the process', async () => {
  const { model, numAborted } = createStuckModel();
  const controller = new AbortController();
  const events = generateAnswers(model, JOB, { tenant: 't', signal: controller.signal }, LIMITS);
  const unheard = await collectUnheard(async () => {
    expect((await events.next()).value).toMatchObject({ choice: 0, text: 'x', finishReason: null });
    await settle();
    controller.abort();
  });
  expect(unheard).toEqual([]);
  expect(numAborted()).toBe(1); // the others wait at their first word for a reader
  for (;;) {
    try {
      if ((await events.next()).done) break;
    } catch (error) {
      expect(error).toMatchObject({ code: 'aborted' });
      break;
    }
  }
});

test('[G2] leaving the stream aborts every answer', async () => {
  const { model, numAborted } = createStuckModel();
  const events = generateAnswers(model, JOB, { tenant: 't', signal: new AbortController().signal }, LIMITS);
  const unheard = await collectUnheard(async () => {
    for (let i = 0; i < 3; i++) await events.next();
    await settle();
    await events.return();
  });
  expect(unheard).toEqual([]);
  expect(numAborted()).toBe(3);
});

const SIGNAL = new AbortController().signal;
const CALLER = { tenant: 't', signal: SIGNAL };

/** Answers each call with the number of the call, and reports one token. */
function createCountingModel() {
  const calls: { prompt: Prompt; options: GenerateOptions }[] = [];
  const encoded: unknown[] = [];
  const model = {
    modelInfo: () => ({ maxContext: 100 }),
    aside: {
      async encodePrompt(prompt: Prompt, options: unknown) {
        encoded.push([prompt, options]);
        return [1, 2, 3];
      },
    },
    async *generateStream(prompt: Prompt, options: GenerateOptions) {
      const number = calls.push({ prompt, options });
      options.onPrompt?.(number);
      options.onToken?.({ elapsedMs: number } as TokenProgress);
      yield pieceOf(`${number}`, number);
      yield pieceOf('.', number);
    },
  } as unknown as Model;
  return { model, calls, encoded };
}

async function run(changes: Partial<GenerationRequest>, caller: Partial<GenerationCaller> = {}, limits = LIMITS) {
  const { model, calls } = createCountingModel();
  const request = { ...JOB, numChoices: 1, ...changes };
  const texts: string[] = [];
  for await (const chunk of generateAnswers(model, request, { tenant: 't', signal: SIGNAL, ...caller }, limits)) {
    texts.push(`${chunk.choice}: ${chunk.text}`);
  }
  return { calls, texts, options: calls[0]!.options };
}

test('each prompt is answered as often as it was asked, with seeds of its own; the first one is heard', async () => {
  const heard: unknown[] = [];
  const { calls, texts } = await run(
    { prompts: ['a', 'b'], numChoices: 2, options: { seed: 7 } },
    { onPrompt: (count) => heard.push(count), onToken: (choice, { elapsedMs }) => heard.push([choice, elapsedMs]) },
  );
  expect(calls.map(({ prompt, options }) => [prompt, options.seed])).toEqual([
    ['a', 7],
    ['a', 8],
    ['b', 7],
    ['b', 8],
  ]);
  expect(texts.toSorted()).toEqual(['0: .', '0: 1', '1: .', '1: 2', '2: .', '2: 3', '3: .', '3: 4']);
  expect(heard).toEqual([1, [0, 1], 2, [1, 2], [2, 3], [3, 4]]);
  expect(calls.every(({ options }) => options.signal !== SIGNAL)).toBe(true);
});

test('one answer has the options and the signal of its caller, and nothing that was not asked for', async () => {
  const { options, texts } = await run({ options: { maxTokens: 9 } });
  expect(texts).toEqual(['0: 1', '0: .']);
  expect(options).toEqual({ maxTokens: 9, tenant: 't', signal: SIGNAL });
  expect(options.signal).toBe(SIGNAL);
  expect((await run({}, { priority: 0 })).options.priority).toBe(0);
  expect((await run({ options: { seed: null } })).options.seed).toBeNull();
  expect((await run({ options: { seed: Number.MAX_SAFE_INTEGER } })).options.seed).toBe(0);
});

const TOOL = { name: 'f', description: null, parameters: null, isStrict: false };
const DEFINED = { type: 'function', function: { name: 'f', strict: false } };

test.each<[string, Partial<GenerationRequest>, object]>([
  ['a constraint', { constraint: { kind: 'regex', pattern: 'a' } }, { grammar: { type: 'regex', pattern: 'a' } }],
  ['tools', { tools: [TOOL] }, { tools: [DEFINED], parallelToolCalls: true }],
  ['one call at a time', { tools: [TOOL], canCallInParallel: false }, { tools: [DEFINED], parallelToolCalls: false }],
  ['no call', { tools: [TOOL], toolChoice: 'none' }, { tools: [DEFINED], parallelToolCalls: true }],
  ['a call', { tools: [TOOL], toolChoice: 'required' }, { tools: [DEFINED], parallelToolCalls: true, toolChoice: 'required' }], // prettier-ignore
  ['a tool', { tools: [TOOL], toolChoice: { name: 'f' } }, { tools: [DEFINED], parallelToolCalls: true, toolChoice: { name: 'f' } }], // prettier-ignore
])('a request for %s reaches the model', async (_name, changes, expected) => {
  expect((await run(changes)).options).toEqual({ maxTokens: 9, tenant: 't', signal: SIGNAL, ...expected });
});

test('a tool has the parts that it was given', () => {
  const parameters = { type: 'object' };
  expect(toDefinition({ ...TOOL, description: '', parameters, isStrict: true })).toEqual({
    type: 'function',
    function: { name: 'f', description: '', parameters, strict: true },
  });
});

test.each([
  [{ kind: 'json_object' } as const, { type: 'json_object' }],
  [{ kind: 'json_schema', name: 'x', schema: {}, isStrict: false } as const, { type: 'json_schema', schema: {}, strict: false, assertFormats: 'where-possible' }], // prettier-ignore
  [{ kind: 'grammar', grammar: 'root ::= "a"' } as const, { type: 'gbnf', text: 'root ::= "a"' }],
])('the constraint %j is a grammar', (constraint, grammar) => {
  expect(toGrammar(constraint)).toEqual(grammar);
});

test('what the model reads is named for those that count tokens', async () => {
  const read = { parseSpecial: false, reasoning: 'low', templateVariables: {}, continueFinalMessage: false } as const;
  const request = { ...JOB, options: { ...read, temperature: 1 } };
  expect(promptOptions(request)).toEqual(read);
  expect(promptOptions(JOB)).toEqual({});
  expect(promptOptions({ ...JOB, options: { fill: { suffix: '' } } })).toEqual({ fill: { suffix: '' } });
  expect(PLAIN_REQUEST.canCallInParallel).toBe(true);
  const { model, encoded } = createCountingModel();
  expect(await countPromptTokens(model, request, LIMITS, CALLER)).toBe(3);
  expect(encoded).toEqual([['a', { ...read, ...CALLER }]]);
});

test('an answer has at most the tokens of the limit, or fills the context where it has none', async () => {
  expect((await run({ options: { maxTokens: 100 } })).options).toMatchObject({ maxTokens: 100 });
  expect((await run({ options: {} })).options).toMatchObject({ maxTokens: 100, clampMaxTokens: true });
  expect((await run({ options: { maxTokens: 101, clampMaxTokens: true } })).options.maxTokens).toBe(100);
  for (const clampMaxTokens of [false, undefined]) {
    const options = { maxTokens: 101, ...(clampMaxTokens === undefined ? {} : { clampMaxTokens }) };
    await expect(run({ options, fieldNames: { maxTokens: 'max_tokens' } })).rejects.toMatchObject({
      code: 'limit_exceeded',
      message: "'max_tokens' is 101, at most 100 are allowed",
      data: { option: 'max_tokens', maxTokens: 101, limit: 100 },
    });
  }
});

const chat = (...messages: readonly object[]): Prompt => messages.map((one) => ({ role: 'user', content: '', ...one })) as never; // prettier-ignore

test.each<[string, Partial<GenerationRequest>, number]>([
  ['a text', { prompts: ['x'.repeat(20)] }, 20],
  ['token ids', { prompts: [Array.from({ length: 20 }, () => 1)] }, 20],
  ['messages', { prompts: [chat({ content: 'x'.repeat(10) }, { content: 'y'.repeat(8) })] }, 20],
  ['reasoning', { prompts: [chat({ content: 'x', reasoning: 'y'.repeat(18) })] }, 20],
  ['calls', { prompts: [chat({ toolCalls: [{ id: '', name: 'abc', arguments: '{"a":1}' }, { id: '', name: 'x', arguments: '{}' }] })] }, 14], // prettier-ignore
  ['tools', { prompts: ['x'], tools: [TOOL] }, 1 + JSON.stringify([TOOL]).length],
  ['a gap', { prompts: ['x'], options: { fill: { suffix: 'abc', start: 'd', files: [{ name: 'e', text: 'fg' }] } } }, 8], // prettier-ignore
])(
  'a prompt of %s that has more characters than the context can hold is refused before it is tokenized',
  async (_name, changes, length) => {
    // prettier-ignore
    const { model, calls } = createCountingModel();
    const request = { ...JOB, ...changes };
    const limitsFor = (maxChars: number) => ({ maxTokens: 100, maxCharsPerToken: maxChars / 100 });
    expect(await countPromptTokens(model, request, limitsFor(length), CALLER)).toBe(3);
    await expect(countPromptTokens(model, request, limitsFor(length - 1), CALLER)).rejects.toMatchObject({
      code: 'context_overflow',
      data: { length, maxChars: length - 1, maxContext: 100 },
    });
    await expect(run(changes, {}, limitsFor(length - 1))).rejects.toMatchObject({ code: 'context_overflow' });
    expect(calls).toEqual([]);
  },
);
