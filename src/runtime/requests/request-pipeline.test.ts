import { expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { pieceOf } from '../../../test/support/echo-model.ts';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import type { ErasureSubject } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { TokenProgress } from '../generation-types.ts';
import type { RequestMemory } from '../memory/request-memory.ts';
import type { RememberedCall } from '../memory/types.ts';
import type { Model } from '../model.ts';
import type { Routing } from '../routing/types.ts';
import { createAdapterScales } from './adapter-scales.ts';
import { createAdmission } from './admission.ts';
import { resolveRequestLimits } from './limits.ts';
import { createLiveRequests } from './live-requests.ts';
import type { ModelHost } from './model-host.ts';
import { createRequestMeter } from './request-meter.ts';
import { createRequestPipeline, type RequestPipelineOptions, type RunningRequest } from './request-pipeline.ts';
import type { Tracer } from './tracing.ts';

const request = {
  model: 'spoken',
  prompts: ['hi'],
  numChoices: 1,
  options: {},
  constraint: null,
  tools: [],
  toolChoice: 'auto',
  canCallInParallel: true,
} as const;

test('[G2] a client that leaves before it reads frees its place and its model', async () => {
  const { services } = createTestServer([entryOf('spoken', async () => createSpokenModel(['a long answer']).model)]);
  const client = new AbortController();
  const caller = { requestId: 'r1', tenant: 'local', signal: client.signal, trace: null };
  const running = await services.pipeline.start(request, caller);
  expect(services.admission.numRequests).toBe(1);
  client.abort();
  expect(services.admission.numRequests).toBe(0);
  expect(services.models.list()[0]!.numUsers).toBe(0);
  // A reader that was slow must not take the end for the end of the answer.
  await expect(
    (async () => {
      for await (const _ of running.events);
    })(),
  ).rejects.toMatchObject({ code: 'aborted' });
});

const TRACE = { traceId: '1', headers: {} };
const CALLER = { requestId: 'r1', tenant: 'local', signal: new AbortController().signal, trace: TRACE };
const NOTHING = { firstToken() {}, interToken() {}, promptTokens() {}, generatedTokens() {}, finished() {}, unfinished() {} }; // prettier-ignore
const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
const END = { ...pieceOf('.', 2), finishReason: 'stop', usage: USAGE, timings: {} } as never;

interface Given extends Partial<RequestPipelineOptions> {
  readonly adapter?: string | null;
  readonly isLoaded?: boolean;
  readonly answer?: (options: GenerateOptions) => AsyncGenerator<never>;
  readonly acquireFails?: RuvLLMError;
}

/** A pipeline over one model, which calls itself by the name it was asked for. */
function setUp({ adapter = null, isLoaded = true, answer, acquireFails, ...more }: Given = {}) {
  const log: string[] = [];
  const calls: GenerateOptions[] = [];
  const remembered: RememberedCall[] = [];
  const clock = createManualClock();
  const start: Tracer['start'] = (name, _attributes, trace) => {
    log.push(`start ${name} ${trace?.traceId}`);
    return { context: trace, set() {}, end: (error) => void log.push(`end ${name} ${error}`) };
  };
  async function* speak(options: GenerateOptions): AsyncGenerator<never> {
    options.onPrompt?.(4);
    yield pieceOf('a', 1) as never;
    yield END;
  }
  const model = {
    ...createSpokenModel(['x']).model,
    isLoaded: () => isLoaded,
    adapters: () => [{ name: 'legal', tenant: null }],
    generateStream(_prompt: string, options: GenerateOptions) {
      calls.push(options);
      return (answer ?? speak)(options);
    },
  } as unknown as Model;
  const acquired: string[] = [];
  let numLeases = 0;
  const models = {
    numUsers: 0,
    find: (name: string) => (name === 'large' ? { model } : null),
    async acquire(name: string) {
      if (acquireFails !== undefined) throw acquireFails;
      acquired.push(name);
      numLeases++;
      return { id: name, model, adapter, release: () => void numLeases-- };
    },
  } as unknown as ModelHost;
  const memory = {
    async begin(call: RememberedCall) {
      remembered.push(call);
      return {
        prompt: call.prompt,
        sources: [],
        recall: null,
        embedded: null,
        similarities: [],
        near: null,
        finish() {},
      };
    },
    errorPatterns: {},
  } as unknown as RequestMemory;
  const limits = resolveRequestLimits();
  const admission = createAdmission(limits, clock);
  const live = createLiveRequests(clock);
  const meters = { openRequest: () => createRequestMeter(NOTHING) };
  const pipeline = createRequestPipeline({ models, admission, limits, meters, live, clock, tracer: { start }, memory: null, routing: null, ...more }); // prettier-ignore
  return { pipeline, log, calls, remembered, acquired, live, memory, admission, numLeases: () => numLeases };
}

async function readAll(running: RunningRequest): Promise<string> {
  let text = '';
  for await (const chunk of running.events) text += chunk.text;
  return text;
}

test('a request that is read to its end is not aborted, one that is left is', async () => {
  const { pipeline, calls, log, admission, numLeases } = setUp();
  const running = await pipeline.start(request, CALLER);
  expect([await running.promptTokens, await readAll(running)]).toEqual([4, 'a.']);
  expect([calls[0]!.signal!.aborted, admission.numRequests, numLeases()]).toEqual([false, 0, 0]);
  expect('priority' in calls[0]!).toBe(false);
  expect(log).toEqual(['start text_completion spoken 1', 'end text_completion spoken null']);
  const left = await pipeline.start(request, { ...CALLER, priority: 3 });
  for await (const _ of left.events) break;
  await settle();
  expect([calls[1]!.signal!.aborted, calls[1]!.priority, admission.numRequests, numLeases()]).toEqual([true, 3, 0, 0]);
  expect(log.at(-1)).toBe('end text_completion spoken aborted');
});

test('a request that fails, before or after its model is there, frees everything and ends its trace once', async () => {
  const failure = new RuvLLMError('model_not_found', 'no');
  const early = setUp({ acquireFails: failure });
  await expect(early.pipeline.start(request, CALLER)).rejects.toBe(failure);
  expect(early.log).toEqual(['start text_completion spoken 1', 'end text_completion spoken model_not_found']);
  const late = setUp({
    async *answer({ maxTokens }) {
      if (maxTokens !== undefined) throw new RuvLLMError('context_overflow', 'too long');
      yield END;
    },
  });
  await expect(late.pipeline.start(request, CALLER)).rejects.toMatchObject({ code: 'context_overflow' });
  expect(late.log).toEqual(['start text_completion spoken 1', 'end text_completion spoken context_overflow']);
  const { memory } = setUp();
  const recall = setUp({ memory: { ...memory, begin: () => Promise.reject(failure) } });
  await expect(recall.pipeline.start(request, CALLER)).rejects.toBe(failure);
  for (const { admission, numLeases, live } of [early, late, recall]) {
    expect([admission.numRequests, numLeases(), live.list()]).toEqual([0, 0, []]);
  }
});

test('the pages of the prompt are those of the first answer, as they were known first', async () => {
  const { pipeline } = setUp({
    async *answer({ onToken }) {
      const progress = (promptBlocks?: readonly string[]) => ({ elapsedMs: 1, promptTokens: 1, cachedTokens: 0, promptBlocks }) as TokenProgress; // prettier-ignore
      onToken!(progress());
      yield pieceOf('a', 1) as never;
      onToken!(progress(['x']));
      onToken!(progress(['y']));
      yield END;
    },
  });
  const running = await pipeline.start(request, CALLER);
  expect(running.promptBlocks()).toBeNull();
  await readAll(running);
  expect(running.promptBlocks()).toEqual(['x']);
  let number = 0;
  const two = setUp({
    async *answer({ onToken }) {
      onToken!({ elapsedMs: 1, promptTokens: 1, cachedTokens: 0, promptBlocks: [`answer ${number++}`] } as unknown as TokenProgress); // prettier-ignore
      yield END;
    },
  });
  const both = await two.pipeline.start({ ...request, numChoices: 2 }, CALLER);
  await readAll(both);
  expect(both.promptBlocks()).toEqual(['answer 0']);
});

test('a request belongs to its user', async () => {
  const { pipeline, live } = setUp();
  const subject = { tenant: 'local', userId: 'ada', requestId: null, requestIds: new Set() } as unknown as ErasureSubject; // prettier-ignore
  const [own, other] = [
    await pipeline.start({ ...request, options: { user: 'ada' } }, CALLER),
    await pipeline.start(request, CALLER),
  ];
  await live.erasure.erase(subject);
  expect([own.isErased(), other.isErased()]).toEqual([true, false]);
  own.abort();
  other.abort();
});

test('recall is told who answers with which adapter, and is a part of the trace', async () => {
  const { memory, remembered } = setUp();
  const run = async (given: Given): Promise<readonly string[]> => {
    const { pipeline, log } = setUp({ memory, ...given });
    await readAll(await pipeline.start(request, CALLER));
    return log;
  };
  const scales = createAdapterScales();
  scales.set('spoken', [{ name: 'legal', scale: 2 }]);
  expect(await run({})).toContain('start memory recall 1');
  await run({ adapter: 'own' });
  await run({ adapterScales: scales });
  expect(remembered.map(({ model, adapter, isRouted, reader }) => [model, adapter, isRouted, reader !== null])).toEqual(
    [
      ['spoken', null, false, true],
      ['spoken', 'own', false, true],
      ['spoken', 'legal', false, true],
    ],
  );
});

const LOCAL = { kind: 'local', id: 'good', model: 'large' };
const FAR = { kind: 'remote', id: 'far', model: 'far' };

function routingOf(candidates: readonly object[], safeDefault = 0): Routing {
  const choice = { candidate: LOCAL, why: { kind: 'best' }, confidence: 0.5, contextSize: 256, sampling: { source: 'default' } }; // prettier-ignore
  return {
    config: { alias: 'auto', candidates, safeDefault, weights: { perSecond: 0, perCost: 0 }, memoryStaysLocal: false },
    nearQuery: () => null,
    foresee() {},
    decide: async () => choice,
    note() {},
  } as unknown as Routing;
}

test('a routed request is recalled for before its model is known, with the tokens of the default', async () => {
  const { memory, remembered } = setUp();
  const run = async (given: Given) => {
    const { pipeline, log, acquired, calls } = setUp({ memory, ...given });
    const running = await pipeline.start({ ...request, model: 'auto' }, CALLER);
    expect([await readAll(running), acquired, running.route]).toMatchObject(['a.', ['large'], { candidate: 'good', reason: 'best' }]); // prettier-ignore
    return { log, adapter: calls[0]!.adapter };
  };
  const scales = createAdapterScales();
  scales.set('large', [{ name: 'legal', scale: 2 }]);
  const { log, adapter } = await run({ routing: routingOf([FAR, LOCAL], 1), adapterScales: scales });
  expect([log.includes('start memory recall 1'), adapter]).toEqual([true, [{ name: 'legal', scale: 2 }]]);
  await run({ routing: routingOf([FAR, LOCAL]), isLoaded: false });
  await run({ routing: routingOf([FAR]) });
  expect(remembered.map(({ model, isRouted, reader }) => [model, isRouted, reader !== null])).toEqual([
    ['auto', true, true],
    ['auto', true, false],
    ['auto', true, false],
  ]);
});

test.each<[string, string, Routing | null, string]>([
  ['that is named', 'small', null, 'small'],
  ['that is named beside a router', 'small', routingOf([LOCAL]), 'small'],
  ['of the safe default', 'auto', routingOf([{ ...LOCAL, model: 'other' }, LOCAL], 1), 'large'],
  ['of the first candidate here', 'auto', routingOf([FAR, LOCAL]), 'large'],
  ['that nobody has', 'auto', routingOf([FAR]), 'auto'],
])('tokens are counted by the model %s', async (_name, model, routing, counting) => {
  const { pipeline, acquired, admission, numLeases } = setUp({ routing });
  expect(await pipeline.countTokens({ ...request, model }, CALLER)).toBe(2);
  expect([acquired, admission.numRequests, numLeases()]).toEqual([[counting], 0, 0]);
});
