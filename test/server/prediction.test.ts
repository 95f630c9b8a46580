// Predicted outputs through OpenAI's official client: the same answer, with the right guesses counted.
import OpenAI, { BadRequestError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
let client: OpenAI;
beforeAll(async () => {
  if (!isServerBuilt) return;
  server = await startDistServer({}, { speculation: 'on' });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const request = {
  model: 'random',
  messages: [{ role: 'user' as const, content: 'hello there' }],
  max_tokens: 40,
  temperature: 0,
  // Neither the prefix cache nor earlier answers help.
  cache_prefix: false,
  ignore_eos: true,
};

describe.skipIf(!isServerBuilt)('prediction', () => {
  test('a right prediction is confirmed, a wrong one is not, and the answer is the same', async () => {
    const plain = await client.chat.completions.create(request);
    const text = plain.choices[0]!.message.content!;
    /** Tokens of the prediction that the answer confirmed; random weights also repeat themselves. */
    const ask = async (content: OpenAI.ChatCompletionPredictionContent['content']) => {
      const before = (await server.model.stats()).drafts.prediction.numAccepted;
      const answer = await client.chat.completions.create({ ...request, prediction: { type: 'content', content } });
      expect(answer.choices[0]!.message.content).toBe(text);
      const numConfirmed = (await server.model.stats()).drafts.prediction.numAccepted - before;
      return { numConfirmed, usage: answer.usage!, ...answer.usage!.completion_tokens_details! };
    };
    const right = await ask(text);
    const split = await ask([text.slice(0, 10), text.slice(10)].map((part) => ({ type: 'text', text: part })));
    const wrong = await ask('zq zq zq zq');
    expect(right.numConfirmed).toBeGreaterThan(4);
    expect(right.accepted_prediction_tokens).toBeGreaterThanOrEqual(right.numConfirmed);
    expect(split.numConfirmed).toBe(right.numConfirmed);
    expect(wrong.numConfirmed).toBe(0);
    expect(right.usage.completion_tokens).toBe(plain.usage!.completion_tokens);
  });

  test('metrics and the live view count drafted tokens', async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    const accepted = /ruvllm_draft_tokens_total\{model="random",source="prediction",result="accepted"\} (\d+)/.exec(
      metrics,
    );
    expect(Number(accepted![1])).toBeGreaterThan(0);
    const stats = await server.model.stats();
    expect(stats.drafts.prediction.numAccepted).toBe(Number(accepted![1]));
  });

  test('rejects a prediction of another form', async () => {
    for (const prediction of [
      'text',
      { type: 'text', content: 'a' },
      { type: 'content' },
      { type: 'content', content: [1] },
    ]) {
      const call = client.chat.completions.create({ ...request, prediction: prediction as never });
      await expect(call).rejects.toThrow(BadRequestError);
      await expect(call).rejects.toMatchObject({ param: 'prediction' });
    }
  });
});
