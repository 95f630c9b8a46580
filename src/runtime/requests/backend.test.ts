import { expect, test } from 'vitest';
import { pieceOf } from '../../../test/support/echo-model.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { Model } from '../model.ts';
import type { Prompt } from '../prompt.ts';
import type { RouteCandidate } from '../routing/route-config.ts';
import { createAdapterScales } from './adapter-scales.ts';
import { createLocalBackend, estimatePromptTokens, lengthOfPrompt, openCandidate } from './backend.ts';
import { type GenerationRequest, PLAIN_REQUEST } from './generation-request.ts';
import { resolveRequestLimits } from './limits.ts';

const LIMITS = resolveRequestLimits();
const CALLER = { tenant: 't', signal: new AbortController().signal };
const requestOf = (prompt: Prompt, options: object = {}): GenerationRequest => ({ ...PLAIN_REQUEST, model: 'm', prompts: [prompt], options }); // prettier-ignore

test.each<[string, Prompt, number, number]>([
  ['a text', 'x'.repeat(9), 9, 3],
  ['no text', '', 0, 0],
  ['token ids', [5, 6, 7], 3, 3],
  ['messages', [{ role: 'user', content: 'hi' }], 32, 8],
])('the length of %s, and its tokens before it is tokenized', (_name, prompt, length, numTokens) => {
  expect([lengthOfPrompt(requestOf(prompt)), estimatePromptTokens(requestOf(prompt))]).toEqual([length, numTokens]);
});

function createLease(adapter: string | null) {
  const seen: GenerateOptions[] = [];
  const model = {
    ...createSpokenModel(['x']).model,
    adapters: () => [{ name: 'all', tenant: null }],
    async *generateStream(_prompt: Prompt, options: GenerateOptions) {
      seen.push(options);
      yield pieceOf('a', 1);
    },
  } as unknown as Model;
  return { lease: { id: 'm', model, adapter, release() {} }, seen };
}

test.each<[string, string | null, object, unknown]>([
  ['of the name', 'legal', {}, 'legal'],
  ['of the request', 'legal', { adapter: 'own' }, 'own'],
  ['of no request', 'legal', { adapter: null }, null],
  ['of all requests', null, {}, [{ name: 'all', scale: 2 }]],
])('an answer uses the adapter %s', async (_name, adapter, options, expected) => {
  const { lease, seen } = createLease(adapter);
  const scales = createAdapterScales();
  scales.set('m', [{ name: 'all', scale: 2 }]);
  const backend = createLocalBackend(lease, LIMITS, scales);
  for await (const _ of backend.run(requestOf('a', options), CALLER));
  expect(seen[0]!.adapter).toEqual(expected);
  const plain = createLease(null);
  for await (const _ of createLocalBackend(plain.lease, LIMITS).run(requestOf('a'), CALLER));
  expect('adapter' in plain.seen[0]!).toBe(false);
});

test('a candidate of this machine is its model, with its adapter or that of the name', async () => {
  const adapters: unknown[] = [];
  const open = async (candidate: object): Promise<void> => {
    const { lease, seen } = createLease('named');
    const acquired: unknown[] = [];
    const models = { acquire: async (name: string, options: object) => (acquired.push([name, options]), lease) };
    const context = { config: {}, models, limits: LIMITS, clock: createManualClock() } as never;
    const backend = await openCandidate(context, candidate as RouteCandidate, CALLER.signal);
    for await (const _ of backend.run(requestOf('a'), CALLER));
    expect(acquired).toEqual([['large', { signal: CALLER.signal, waitMs: 120_000 }]]);
    adapters.push(seen[0]!.adapter);
  };
  await open({ kind: 'adapter', id: 'a', model: 'large', adapter: 'legal' });
  await open({ kind: 'local', id: 'b', model: 'large' });
  expect(adapters).toEqual(['legal', 'named']);
});

test('a candidate elsewhere has no tokens, and estimates those of the prompt', async () => {
  const candidate = { kind: 'remote', id: 'far', url: 'http://127.0.0.1:9/v1', model: 'far', timeoutMs: 1000 };
  const context = { config: { keyOf: () => null }, limits: LIMITS, clock: createManualClock() } as never;
  const backend = await openCandidate(context, candidate as RouteCandidate, CALLER.signal);
  const { tokenizer } = backend;
  expect(backend).toMatchObject({ id: 'far', kernels: 'remote', sampling: { temperature: 0.7, topP: 1 } });
  expect([tokenizer.addsBos, tokenizer.addsEos, tokenizer.isControl(1), tokenizer.isEndOfGeneration(1)]).toEqual([false, false, false, false]); // prettier-ignore
  expect(() => tokenizer.encode('a')).toThrow('its tokens are not known here');
  const heard: number[] = [];
  const sent: unknown[] = [];
  const { fetch } = globalThis;
  globalThis.fetch = (async (_url: unknown, { headers }: RequestInit) => {
    sent.push(headers);
    return new Response(null, { status: 401 });
  }) as typeof fetch;
  try {
    const trace = { traceId: '1', headers: { traceparent: '00-1' } };
    const onPrompt = (count: number): void => void heard.push(count);
    for (const caller of [{ ...CALLER, trace, onPrompt }, CALLER]) {
      await expect(backend.run(requestOf('x'.repeat(9)), caller).next()).rejects.toMatchObject({
        code: 'remote_failed',
      });
    }
  } finally {
    globalThis.fetch = fetch;
  }
  expect(heard).toEqual([3]);
  expect(sent.map((headers) => (headers as Record<string, string>)['traceparent'])).toEqual(['00-1', undefined]);
});
