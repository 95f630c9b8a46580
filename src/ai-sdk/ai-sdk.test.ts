import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { asSchema, embed, generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { expect, test } from 'vitest';
import { createSpokenModel } from '../../test/support/spoken-model.ts';
import type { Model } from '../runtime/model.ts';
import { embeddingModel, languageModel } from './index.ts';

const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>';

const weather = (cities: string[]) =>
  tool({
    description: 'Of a city',
    inputSchema: jsonSchema<{ city: string }>({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    }),
    async execute({ city }) {
      cities.push(city);
      return { sky: 'clear' };
    },
  });

test('generateText: answer, usage, and options of the library', async () => {
  const { model, requests } = createSpokenModel(['Blue.']);
  const { text, usage, finishReason } = await generateText({
    model: languageModel(model),
    system: 'Be brief.',
    prompt: 'Which colour?',
    temperature: 0,
    maxOutputTokens: 20,
    providerOptions: { ruvllm: { minP: 0.25, session: 'a' } },
  });
  expect([text, finishReason]).toEqual(['Blue.', 'stop']);
  expect(usage.outputTokens).toBe(5);
  expect(usage.inputTokens).toBe(requests[0]!.promptIds.length);
  expect(requests[0]!.sampling).toMatchObject({ temperature: 0, minP: 0.25 });
  expect(requests[0]!.maxTokens).toBe(20);
  expect(requests[0]!.prompt).toContain('Be brief.');
});

test.each([false, true])('a tool is called and its result is answered, streamed: %s', async (isStream) => {
  const { model, requests } = createSpokenModel([CALL, 'The sky is clear.']);
  const cities: string[] = [];
  const call = {
    model: languageModel(model),
    prompt: 'How is the weather in Rome?',
    tools: { weather: weather(cities) },
    stopWhen: stepCountIs(3),
  };
  const text = isStream ? await streamText(call).text : (await generateText(call)).text;
  expect(text).toBe('The sky is clear.');
  expect(cities).toEqual(['Rome']);
  expect(requests.at(-1)!.prompt).toContain('{"sky":"clear"}');
});

test('streamText yields pieces; cancelling it ends the generation', async () => {
  const { model } = createSpokenModel(['one two three']);
  const pieces: string[] = [];
  for await (const piece of streamText({ model: languageModel(model), prompt: 'Count.' }).textStream) {
    pieces.push(piece);
  }
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.join('')).toBe('one two three');
  let isEnded = false;
  const endless: Pick<Model, 'modelInfo' | 'generateStream'> = {
    modelInfo: model.modelInfo,
    async *generateStream() {
      try {
        for (;;) yield { text: 'x', reasoning: '', toolCalls: [], tokenIds: [1], logprobs: null, textLogprobs: null, finishReason: null }; // prettier-ignore
      } finally {
        isEnded = true;
      }
    },
  };
  const { stream } = await languageModel(endless as Model).doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }],
  });
  const reader = stream.getReader();
  await reader.read();
  await reader.read();
  await reader.cancel();
  expect(isEnded).toBe(true);
});

test('a streamed tool call: text before it ends, its input comes in pieces and then whole', async () => {
  const { model } = createSpokenModel([`I look. ${CALL}`]);
  const { description, inputSchema } = weather([]);
  const { stream } = await languageModel(model).doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'How is Rome?' }] }],
    tools: [
      {
        type: 'function',
        name: 'weather',
        description: description!,
        inputSchema: await asSchema(inputSchema).jsonSchema,
      },
    ],
    toolChoice: { type: 'auto' },
  });
  const parts: LanguageModelV3StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  const kinds = parts.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
  expect(kinds).toEqual(['stream-start', 'text-start', 'text-delta', 'text-end', 'tool-input-start', 'tool-input-delta', 'tool-input-end', 'tool-call', 'finish']); // prettier-ignore
  const input = parts.map((part) => (part.type === 'tool-input-delta' ? part.delta : '')).join('');
  expect(JSON.parse(input)).toEqual({ city: 'Rome' });
  expect(parts.at(-2)).toMatchObject({ type: 'tool-call', toolName: 'weather', input });
  expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'tool-calls' } });
});

test('an abort signal ends the generation, before its start and in the middle', async () => {
  const { model, requests } = createSpokenModel(['x'.repeat(4000)]);
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Go.' }] }];
  const aborted = languageModel(model).doGenerate({ prompt, abortSignal: AbortSignal.abort() });
  await expect(aborted).rejects.toMatchObject({ code: 'aborted' });
  expect(requests).toHaveLength(0);
  const controller = new AbortController();
  const { stream } = await languageModel(model).doStream({ prompt, abortSignal: controller.signal });
  let numParts = 0;
  await expect(async () => {
    for await (const _ of stream) if (++numParts === 4) controller.abort();
  }).rejects.toMatchObject({ code: 'aborted' });
  expect(numParts).toBeLessThan(4000);
});

test('generateObject constrains the answer by the schema', async () => {
  const { model, requests } = createSpokenModel(['{"city":"Rome"}']);
  const schema = jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } });
  const { object } = await generateObject({ model: languageModel(model), prompt: 'Where?', schema });
  expect(object).toEqual({ city: 'Rome' });
  expect(requests[0]!.grammar).toMatchObject({ type: 'json_schema' });
});

test('a prompt with an image is refused', async () => {
  const { model } = createSpokenModel(['x']);
  const content = [{ type: 'image' as const, image: new Uint8Array([1, 2, 3]), mediaType: 'image/png' }];
  const call = generateText({ model: languageModel(model), messages: [{ role: 'user', content }], maxRetries: 0 });
  await expect(call).rejects.toThrow(/reads only text/);
});

test('embed returns the vector of the library', async () => {
  const vector = Float32Array.of(0.5, -0.5);
  const model = {
    modelInfo: () => ({ name: 'm', path: '/m.gguf' }),
    embed: async () => ({ embeddings: [vector], usage: { promptTokens: 3, totalTokens: 3 } }),
  } as unknown as Model;
  const { embedding, usage } = await embed({ model: embeddingModel(model), value: 'hi' });
  expect(embedding).toEqual([0.5, -0.5]);
  expect(usage.tokens).toBe(3);
});
