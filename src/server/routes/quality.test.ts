// Estimated quality and reflection over HTTP, with a scripted model.
import { afterEach, describe, expect, test } from 'vitest';
import { createSpokenModel, type SpokenModelOptions } from '../../../test/support/spoken-model.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { OpinionOptions } from '../../runtime/quality/second-opinions.ts';

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
const callOf = (args: string): string => `<tool_call>\n{"name": "weather", "arguments": ${args}}\n</tool_call>`;
const messages = [{ role: 'user', content: 'How is it in Rome?' }];
const LOOSE: SpokenModelOptions = { refusal: new RuvLLMError('unsupported', 'too hard') };
const CHAT = '/v1/chat/completions';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function setUp(
  answers: readonly string[],
  { quality = {}, peer = [] }: { quality?: OpinionOptions; peer?: readonly string[] } = {},
) {
  const memory = await openTestMemory({});
  const { model, requests } = createSpokenModel(answers, LOOSE);
  const strong = createSpokenModel(peer.length === 0 ? ['-'] : peer);
  const server = createTestServer([entryOf('m', async () => model), entryOf('strong', async () => strong.model)], { memory, quality }); // prettier-ignore
  closers.push(() => server.shutDown(100));
  const send = (path: string, body: object): Promise<Response> =>
    Promise.resolve(
      server.fetch(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      ),
    );
  const ask = async (body: object): Promise<any> => (await send(CHAT, { model: 'm', messages, ...body })).json();
  async function entries(): Promise<any[]> {
    for (;;) {
      await memory.audit.flush();
      const { entries: found } = (await (await send('/admin/memory/audit/search', { order: 'oldest' })).json()) as { entries: { entry: object }[] }; // prettier-ignore
      if (found.length > 0) return found.map(({ entry }) => entry);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  return { ask, send, requests, entries, strong };
}

describe('the audit entry of an answer', () => {
  test('[QE1] has an estimated quality with its parts', async () => {
    const { ask, entries } = await setUp(['It is sunny in Rome.']);
    await ask({});
    const [{ estimate, quality }] = await entries();
    expect(quality).toBeNull();
    expect(estimate.quality).toBeGreaterThan(0);
    expect(Object.keys(estimate.parts).sort()).toEqual(['coherence', 'diversity', 'likelihood', 'repetition']);
  });

  test('[QE1] has the agreement with a second sample and with a stronger model, where they are on', async () => {
    const answers = ['It is sunny in Rome today.', 'It is sunny in Rome today.'];
    const { ask, entries, requests, strong } = await setUp(answers, { quality: { secondSample: true, peer: 'strong' }, peer: ['Heavy snow covers Moscow.'] }); // prettier-ignore
    await ask({ max_tokens: 300 });
    const [{ estimate }] = await entries();
    expect(estimate.parts).toMatchObject({ consistency: 1, peer: 0 });
    expect(requests.map(({ priority, maxTokens }) => [priority, maxTokens])).toEqual([
      [0, 300],
      [-10, 48],
    ]);
    expect(strong.requests.map(({ priority }) => priority)).toEqual([-10]);
  });

  test('[QE1] no second sample is taken by default', async () => {
    const { ask, entries, requests } = await setUp(['It is sunny in Rome.']);
    await ask({});
    await entries();
    expect(requests).toHaveLength(1);
  });
});

describe('the field "reflection"', () => {
  const wrong = callOf('{"town": "Rome"}');
  const right = callOf('{"city": "Rome"}');

  test('[RF1] is off by default', async () => {
    const { ask } = await setUp([wrong, right]);
    const answer = await ask({ tools });
    expect(answer.choices[0].message.tool_calls[0].function.arguments).toBe('{"town": "Rome"}');
    expect(answer.reflection).toBeUndefined();
  });

  test('[RF2][RF6] retries, and shows each attempt in the answer, in its usage and in the audit entry', async () => {
    const { ask, entries } = await setUp([wrong, right]);
    const answer = await ask({ tools, reflection: true });
    expect(answer.choices[0].message.tool_calls[0].function.arguments).toBe('{"city": "Rome"}');
    expect(answer.reflection).toMatchObject({ ending: 'accepted', chosen: 1, error: null });
    const [first, second] = answer.reflection.attempts;
    expect(first.error).toContain('"city" is missing');
    expect(answer.usage.completion_tokens).toBe(first.completion_tokens + second.completion_tokens);
    expect(answer.usage.completion_tokens_details.discarded_tokens).toBe(first.completion_tokens);
    const [entry] = await entries();
    expect(entry.reflection.attempts.map(({ error }: { error: string | null }) => error !== null)).toEqual([
      true,
      false,
    ]);
    expect(entry.response).toBe('weather{"city": "Rome"}');
  });

  test('[RF2] streams the accepted answer alone, with the report in its last chunk', async () => {
    const { send } = await setUp([wrong, right]);
    const response = await send(CHAT, { model: 'm', messages, tools, stream: true, reflection: { max_retries: 1 } });
    const text = await response.text();
    const chunks = text.split('\n\n').filter((event) => event.startsWith('data: {')).map((event) => JSON.parse(event.slice(6)) as any); // prettier-ignore
    const deltas = JSON.stringify(chunks.map(({ choices }) => choices[0].delta));
    expect([deltas.includes('town'), deltas.includes('city')]).toEqual([false, true]);
    expect(chunks.findLast(({ choices }) => choices[0]?.finish_reason !== null)!.reflection).toMatchObject({
      ending: 'accepted',
    });
  });

  test.each([
    ['/v1/messages', { max_tokens: 200, tools: [{ name: 'weather', input_schema: parameters }] }],
    ['/v1/responses', { input: 'How is it in Rome?', messages: undefined, tools: [{ type: 'function', name: 'weather', parameters, strict: false }] }], // prettier-ignore
  ])('[RF2] is a field of %s, too', async (path, body) => {
    const { send, requests } = await setUp([wrong, right]);
    const answer = JSON.stringify(await (await send(path, { model: 'm', messages, ...body, reflection: true })).json());
    expect(answer).toContain('Rome');
    expect(answer).not.toContain('town');
    expect(requests.filter(({ grammar }) => grammar === null)).toHaveLength(2);
  });

  test('[RF8] out of range is a 400 that names it', async () => {
    const { send } = await setUp(['a']);
    for (const [reflection, param] of [
      [{ max_retries: 9 }, 'reflection.max_retries'],
      ['yes', 'reflection'],
    ]) {
      const response = await send(CHAT, { model: 'm', messages, reflection });
      expect([response.status, ((await response.json()) as any).error.param]).toEqual([400, param]);
    }
  });
});
