// Other vendors' clients against the built server.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
beforeAll(async () => {
  if (isServerBuilt) server = await startDistServer();
});
afterAll(() => server?.[Symbol.asyncDispose]());

describe.skipIf(!isServerBuilt)('ai with @ai-sdk/openai-compatible', () => {
  const model = () =>
    createOpenAICompatible({ name: 'ruvllm', baseURL: `${server.url}/v1`, includeUsage: true }).chatModel('random');

  test('returns text, complete and streamed', async () => {
    const ask = { model: model(), prompt: 'hello', maxOutputTokens: 12, seed: 4, temperature: 1, topP: 1 };
    const whole = await generateText(ask);
    expect(whole.finishReason).toMatch(/^(?:length|stop)$/);
    expect(whole.usage.outputTokens).toBeGreaterThan(0);
    const stream = streamText(ask);
    let text = '';
    for await (const piece of stream.textStream) text += piece;
    expect(text).toBe(whole.text);
    expect((await stream.usage).outputTokens).toBe(whole.usage.outputTokens);
  });

  test('reports failures and aborts', async () => {
    await expect(generateText({ model: model(), prompt: 'x', temperature: 9, maxRetries: 0 })).rejects.toMatchObject({
      statusCode: 400,
      isRetryable: false,
    });
    const controller = new AbortController();
    const stream = streamText({ model: model(), prompt: 'x', maxOutputTokens: 400, abortSignal: controller.signal });
    for await (const _piece of stream.textStream) controller.abort();
    while ((await server.model.stats()).numRunning > 0);
    const { numPages, numFreePages } = await server.model.stats();
    expect(numFreePages).toBe(numPages);
  });
});

describe.skipIf(!isServerBuilt)('@langchain/openai', () => {
  const model = (more: { temperature?: number } = {}) =>
    new ChatOpenAI({
      model: 'random',
      apiKey: 'none',
      maxTokens: 12,
      temperature: 0,
      maxRetries: 0,
      configuration: { baseURL: `${server.url}/v1` },
      ...more,
    });

  test('invoke and stream', async () => {
    const answer = await model().invoke('hello');
    expect(answer).toMatchObject({ usage_metadata: { output_tokens: expect.any(Number) } });
    let text = '';
    for await (const chunk of await model().stream('hello')) text += chunk.text;
    expect(text).toBe(answer.text);
  });

  test('reports failures', async () => {
    await expect(model({ temperature: 9 }).invoke('hello')).rejects.toMatchObject({ status: 400 });
  });
});
