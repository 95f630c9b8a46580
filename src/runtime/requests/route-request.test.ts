import { expect, test } from 'vitest';
import { pieceOf } from '../../../test/support/echo-model.ts';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { Model } from '../model.ts';
import type { Prompt } from '../prompt.ts';
import type { RouteCandidate, RouteConfig } from '../routing/route-config.ts';
import type { RouteChoice, RouteQuestion, Routing } from '../routing/types.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import { type GenerationRequest, PLAIN_REQUEST } from './generation-request.ts';
import { resolveRequestLimits } from './limits.ts';
import type { ModelHost } from './model-host.ts';
import type { RememberedRequest } from './remember-request.ts';
import { loadOf, probeCandidates, questionOf, routeRequest, turnsOf } from './route-request.ts';

const LIMITS = resolveRequestLimits();
const CALLER = { tenant: 't', signal: new AbortController().signal };
const requestOf = (changes: Partial<GenerationRequest> = {}): GenerationRequest => ({ ...PLAIN_REQUEST, model: 'auto', prompts: ['hi'], options: {}, ...changes }); // prettier-ignore
const LOCAL = { kind: 'local', id: 'near', model: 'large', latency: 'low' } as const;
const FAR = { kind: 'remote', id: 'far', url: 'http://far.example/v1', model: 'far', latency: 'low', timeoutMs: 1000, pricePerMTokens: { input: 0, output: 0 } } as const; // prettier-ignore

test.each<[Partial<GenerationRequest>, boolean]>([
  [{}, true],
  [{ options: { temperature: 1 } }, false],
  [{ options: { topP: 1 } }, false],
  [{ options: { temperature: 1, topP: 1 } }, false],
  [{ options: { temperature: 1 }, isSamplingOpen: true }, true],
  [{ isSamplingOpen: false }, false],
])('with %j a router may choose the sampling: %s', (changes, isOpen) => {
  const question = questionOf(requestOf(changes), { embedded: null, similarities: [] }, 0.5);
  expect(question).toMatchObject({ turns: ['hi'], near: null, load: 0.5, isLocalOnly: false, numPromptTokens: 1, maxTokens: null }); // prettier-ignore
  expect(question.sampling!.isOpen).toBe(isOpen);
});

test('a router reads the turns of a conversation, and no token ids', () => {
  const messages = [{ role: 'system', content: 'be' }, { role: 'user', content: 'hi' }] as const; // prettier-ignore
  expect(turnsOf(requestOf({ prompts: [messages] }))).toEqual(['hi']);
  expect(turnsOf(requestOf({ prompts: [[1, 2]] }))).toEqual([]);
  expect(loadOf({ numUsers: 3 } as ModelHost, 4)).toBe(0.75);
  expect(loadOf({ numUsers: 9 } as ModelHost, 4)).toBe(1);
});

interface Probe {
  readonly isLoaded?: boolean;
  readonly fails?: boolean;
  readonly candidate?: object;
  readonly perSecond?: number;
  readonly request?: Partial<GenerationRequest>;
  readonly waitMs?: number;
}

async function probe({
  isLoaded = true,
  fails = false,
  candidate = LOCAL,
  perSecond = 0,
  request = {},
  waitMs = 0,
}: Probe) {
  // prettier-ignore
  const clock = createManualClock();
  const asked: unknown[] = [];
  const model = {
    isLoaded: () => isLoaded,
    modelInfo: () => ({ maxContext: 10 }),
    async cachedTokens(_prompt: Prompt, options: { adapter: unknown }) {
      asked.push(options.adapter);
      if (fails) throw new Error('no');
      if (waitMs > 0) await new Promise<void>((resolve) => clock.setTimer(waitMs, resolve));
      return { promptTokens: 3, cachedTokens: 2 };
    },
  };
  const models = { find: (name: string) => (name === 'large' ? { model } : null) } as unknown as ModelHost;
  const config = { candidates: [candidate], weights: { perSecond, perCost: 0 } } as unknown as RouteConfig;
  const probing = probeCandidates({ models, clock }, config, requestOf(request), CALLER);
  await settle();
  clock.advance(waitMs);
  return { ...(await probing)[0]!, asked };
}

const UNKNOWN = { maxContext: null, promptTokens: null, cachedTokens: 0, asked: [] };
const LOADED = { ...UNKNOWN, maxContext: 10 };
const COUNTED = { maxContext: 10, promptTokens: 3, cachedTokens: 2, asked: [null] };

test.each<[string, Probe, object]>([
  ['elsewhere', { candidate: FAR, perSecond: 1 }, UNKNOWN],
  ['that is no model', { candidate: { ...LOCAL, model: 'none' }, perSecond: 1 }, UNKNOWN],
  ['that is not loaded', { isLoaded: false, perSecond: 1 }, UNKNOWN],
  ['that has room in any case', { request: { prompts: ['x'.repeat(9)] } }, LOADED],
  ['that has room for prompt and answer', { request: { prompts: ['x'.repeat(6)], options: { maxTokens: 4 } } }, LOADED],
  ['whose context may be too small', { request: { prompts: ['x'.repeat(10)] } }, COUNTED],
  ['whose context may be too small for the answer', { request: { prompts: ['x'.repeat(6)], options: { maxTokens: 5 } } }, COUNTED], // prettier-ignore
  ['where time counts', { perSecond: 1 }, COUNTED],
  ['with an adapter', { perSecond: 1, candidate: { ...LOCAL, kind: 'adapter', adapter: 'legal' } }, { ...COUNTED, asked: ['legal'] }], // prettier-ignore
  ['with the adapter of the request', { perSecond: 1, request: { options: { adapter: 'own' } } }, { ...COUNTED, asked: ['own'] }], // prettier-ignore
  ['that answers just in time', { perSecond: 1, waitMs: 49 }, COUNTED],
  ['that is busy', { perSecond: 1, waitMs: 60 }, { ...LOADED, asked: [null] }],
  ['that cannot read the prompt', { perSecond: 1, fails: true }, { ...LOADED, asked: [null] }],
])('what is known of a candidate %s', async (_name, given, expected) => {
  expect(await probe(given)).toEqual(expected);
});

interface Route {
  /** Chosen first, and after a failure. */
  readonly order: readonly RouteCandidate[];
  readonly fetch?: () => Promise<Response>;
  readonly sampling?: object;
  readonly config?: Partial<RouteConfig>;
  readonly sources?: readonly object[];
  readonly request?: Partial<GenerationRequest>;
}

async function route({
  order,
  fetch = () => Promise.reject(new Error()),
  sampling = { source: 'default' },
  config = {},
  sources = [],
  request = {},
}: Route) {
  // prettier-ignore
  const clock = createManualClock();
  const notes: unknown[] = [];
  const reasons: string[] = [];
  const served: string[] = [];
  const questions: RouteQuestion[] = [];
  const options: GenerateOptions[] = [];
  const left = [...order];
  const choose = (): RouteChoice | null => {
    const candidate = left.shift();
    return candidate === undefined ? null : ({ candidate, sampling } as RouteChoice);
  };
  const model = {
    modelInfo: () => ({ maxContext: 100, kernels: 'k', sampling: {} }),
    isLoaded: () => true,
    async *generateStream(_prompt: Prompt, given: GenerateOptions) {
      options.push(given);
      clock.advance(7);
      yield pieceOf('near', 1);
      clock.advance(7);
      yield pieceOf('by', 1);
    },
  } as unknown as Model;
  const models = {
    numUsers: 0,
    find: () => ({ model }),
    acquire: async () => ({ id: 'large', model, adapter: null, release() {} }),
  } as unknown as ModelHost;
  const routing = {
    config: { candidates: order, weights: { perSecond: 0, perCost: 0 }, memoryStaysLocal: false, keyOf: () => null, ...config }, // prettier-ignore
    decide: async (_tenant: string, question: RouteQuestion) => (questions.push(question), choose()),
    fallBack: (_choice: RouteChoice, _question: RouteQuestion, reason: string) => (reasons.push(reason), choose()),
    note: (id: string, ttftMs: number | null) => void notes.push([id, ttftMs]),
  } as unknown as Routing;
  const original = requestOf(request);
  const recalled = { request: original, sources, embedded: null, similarities: [], near: null, serve: ({ model: id }: { model: string }) => void served.push(id) }; // prettier-ignore
  const { fetch: real } = globalThis;
  globalThis.fetch = (async () => {
    clock.advance(3);
    return await fetch();
  }) as typeof globalThis.fetch;
  const texts: string[] = [];
  let error: unknown = null;
  try {
    const context = { routing, models, limits: LIMITS, clock };
    const { events, observer } = await routeRequest(context, original, recalled as unknown as RememberedRequest, CALLER); // prettier-ignore
    for await (const chunk of events) {
      observer.onEvent(chunk as AnswerChunk);
      texts.push(chunk.text);
    }
  } catch (thrown) {
    error = thrown;
  } finally {
    globalThis.fetch = real;
  }
  return { notes, reasons, served, texts, error, options, question: questions[0]! };
}

const STREAM = { headers: { 'content-type': 'text/event-stream' } };
const answer = async (): Promise<Response> =>
  new Response('data: {"choices":[{"delta":{"content":"far"},"finish_reason":"stop"}]}\n\n', STREAM);
const status = (code: number) => async () => new Response(null, { status: code });

test('the time to the first token of the backend is noted once', async () => {
  expect(await route({ order: [LOCAL] })).toMatchObject({ texts: ['near', 'by'], notes: [['near', 7]], served: ['large'], error: null }); // prettier-ignore
  expect(await route({ order: [FAR], fetch: answer })).toMatchObject({ texts: ['far', ''], notes: [['far', 3]], served: ['far'], error: null }); // prettier-ignore
});

test('a backend that fails is noted and replaced; one that refuses the request is replaced', async () => {
  expect(await route({ order: [FAR, LOCAL], fetch: status(500) })).toMatchObject({
    texts: ['near', 'by'],
    notes: [['far', null], ['near', 7]],
    served: ['far', 'large'],
    reasons: ['remote_failed: "far" failed (status 500)'],
  }); // prettier-ignore
  expect((await route({ order: [FAR, LOCAL], fetch: status(400) })).notes).toEqual([['near', 7]]);
});

test('without another backend its error is the error of the request', async () => {
  const { error, reasons } = await route({ order: [FAR], fetch: status(429) });
  expect(error).toMatchObject({ code: 'overloaded', data: { candidate: 'far' } });
  expect(reasons).toHaveLength(1);
});

test('an answer that breaks off after its first token is not replaced', async () => {
  const broken = async (): Promise<Response> => new Response('data: {"choices":[{"delta":{"content":"far"}}]}\n\n', STREAM); // prettier-ignore
  expect(await route({ order: [FAR, LOCAL], fetch: broken })).toMatchObject({ texts: ['far'], reasons: [], error: { code: 'remote_failed' } }); // prettier-ignore
});

test('learned sampling replaces that of the request', async () => {
  const learned = await route({ order: [LOCAL], sampling: { source: 'learned', temperature: 0.1, topP: 0.2 } });
  expect(learned.options[0]).toMatchObject({ temperature: 0.1, topP: 0.2 });
  const own = await route({ order: [LOCAL], sampling: { source: 'request', temperature: 0.1, topP: 0.2 } });
  expect(own.options[0]).not.toHaveProperty('temperature');
});

test.each<[boolean, readonly object[], Partial<GenerationRequest>, boolean]>([
  [false, [], {}, false],
  [false, [{}], {}, false],
  [true, [], {}, false],
  [true, [{}], {}, true],
  [false, [], { options: { logitBias: {} } }, true],
])(
  'with memory that stays local (%s) and the sources %j a request is for this machine only: %s',
  async (memoryStaysLocal, sources, request, isLocalOnly) => {
    // prettier-ignore
    const { question } = await route({ order: [LOCAL], config: { memoryStaysLocal }, sources, request });
    expect(question.isLocalOnly).toBe(isLocalOnly);
  },
);
