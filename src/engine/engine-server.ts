import { assert, RuvLLMError, serializeError } from '../core/errors.ts';
import { createRandom, type Random } from '../core/random.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import type { Sampler, SamplingParams } from '../sampling/types.ts';
import { createConstraints, ENGINE_LIMITS } from './constraints.ts';
import type { Engine } from './engine.ts';
import { createExaminer } from './examiner.ts';
import { openEngine, type OpenedEngine, type OpenModel } from './open-engine.ts';
import type {
  ClientMessage,
  EmbedRequest,
  ExamineRequest,
  GenerateRequest,
  ModelReport,
  ModelSpec,
  ServerMessage,
} from './protocol.ts';
import { createRecovery, type Recovery } from './recovery.ts';
import { openGrammarSampler } from './slow-grammars/open-grammar-sampler.ts';
import { createSamplerClient } from './slow-grammars/sampler-client.ts';
import type { SpawnSamplerThread } from './slow-grammars/types.ts';
import type { EngineRequest, RequestAdapter } from './types.ts';

export interface EngineServerOptions {
  readonly post: (message: ServerMessage) => void;
  readonly openModel: OpenModel;
  readonly createSampler: (params: SamplingParams, random: Random) => Sampler;
  readonly now: () => number;
  /** Resolves once all messages received so far are handled. */
  readonly yieldToMessages: () => Promise<void>;
  /** A thread that samples under slow grammars; absent: all sequences wait for them. */
  readonly samplers?: {
    readonly spawn: SpawnSamplerThread;
    readonly sleep: (ms: number) => Promise<void>;
  };
  /** Called when a bug broke the loop: the host must end the server, because it will not reply any more. */
  readonly onCrash: (error: unknown) => void;
  /** Throws on an integrity failure of pages or sequences. Default: the engine's own check. */
  readonly checkEngine?: (engine: Engine) => void;
}

export interface EngineServer {
  handle(message: ClientMessage): void;
}

const CHECK_EVERY_MS = 10_000;
/** Limit of requests whose grammars wait for compilation; each takes a turn of the loop. */
const MAX_UNCOMPILED = 256;

/** The longest waits for tokens of another thread: with nothing else to do, and beside sequences that could go on. */
const MAX_IDLE_MS = 10;
const MAX_WAIT_MS = 2;

/** The sampler of sequences that generate nothing. */
const NEVER: Sampler = {
  sample() {
    throw new RuvLLMError('internal', 'a token was sampled for an embedding request');
  },
};

type Handlers = { [T in ClientMessage['type']]: (message: Extract<ClientMessage, { type: T }>) => void };

/** The worker's side: owns the engine, handles messages, steps while there is work. */
export function createEngineServer(options: EngineServerOptions): EngineServer {
  const { post, now, checkEngine = (engine: Engine) => engine.checkIntegrity() } = options;
  const samplers = options.samplers === undefined ? null : createSamplerClient(options.samplers.spawn);
  const constraints = createConstraints({
    now,
    ...(samplers === null ? {} : { maxStepsPerToken: ENGINE_LIMITS.maxQuickStepsPerToken }),
  });
  let engine: Engine | null = null;
  let report: ModelReport | null = null;
  let recovery: Recovery | null = null;
  let loading: Promise<void> | null = null;
  let looping: Promise<void> | null = null;
  let isDisposing = false;
  let nextCheckMs = -Infinity;
  let numTurns = 0;
  const uncompiled: GenerateRequest[] = [];
  /** Ids of requests whose adapters must be loaded again before they can be added. */
  const awaitingPause = new Set<number>();
  /** Work that must run between steps; false: not yet, because earlier requests have not been added. */
  const betweenSteps: (() => boolean)[] = [];

  const open = (spec: ModelSpec): Promise<OpenedEngine> =>
    openEngine(spec, options.openModel, {
      now,
      onReady: () => startLoop(),
      onProgress(loadedBytes, totalBytes) {
        numTurns++; // a model that is loaded again is progress, too
        post({ type: 'progress', loadedBytes, totalBytes });
      },
    });

  async function load(spec: ModelSpec): Promise<void> {
    try {
      const opened = await open(spec);
      ({ engine, report } = opened);
      recovery = createRecovery({ spec, open, warn: opened.warn, post });
      post({ type: 'loaded', model: opened.report });
    } catch (error) {
      post({ type: 'loadFailed', error: serializeError(error) });
    }
  }

  /** Compiles a part of one grammar between two steps, however many are waiting. */
  function generate(request: GenerateRequest): void {
    const { grammar } = request;
    if (grammar === null || engine === null || isDisposing) return startText(request);
    if (grammar.type === 'slow') {
      if (samplers !== null) return startText(request);
      return generate({ ...request, grammar: JSON.parse(grammar.text) as GrammarSource });
    }
    if (constraints.has(grammar)) return startText(request);
    if (uncompiled.length < MAX_UNCOMPILED) {
      uncompiled.push(request);
      startLoop();
      return;
    }
    const message = `${MAX_UNCOMPILED} grammars are already waiting to be compiled`;
    const error = new RuvLLMError('overloaded', message, { data: { limit: MAX_UNCOMPILED }, isRetryable: true });
    post({ type: 'events', events: [{ type: 'failed', id: request.id, error: serializeError(error) }] });
  }

  function compileNext(): void {
    for (let next = uncompiled[0]; next !== undefined; next = uncompiled[0]) {
      const grammar = next.grammar as GrammarSource;
      const isKnown = constraints.has(grammar);
      if (!constraints.prepare(grammar, next.automata)) return; // goes on after the next step
      uncompiled.shift();
      startText(next);
      if (!isKnown) return;
    }
  }

  function startText(generated: GenerateRequest): void {
    const { stopIds, sampling, grammar, automata: _, ...request } = generated;
    start(request.id, request.adapters, () => ({
      ...request,
      stopIds: new Set(stopIds),
      sampler:
        grammar === null
          ? options.createSampler(sampling, createRandom(sampling.seed))
          : openGrammarSampler(grammar, generated, constraints, samplers),
    }));
  }

  function embed(request: EmbedRequest): void {
    const nothing = { maxTokens: 0, stopIds: new Set<number>(), sampler: NEVER };
    const unshared = { cachePrefix: false, retention: 'ordinary' } as const;
    start(request.id, [], () => ({ ...request, ...nothing, ...unshared }));
  }

  function examine({ labels, numTop, ...request }: ExamineRequest): void {
    start(request.id, request.adapters, () => {
      if (labels.length === 0) throw new RuvLLMError('empty_prompt', 'the text has no tokens');
      if (report === null) throw new RuvLLMError('not_loaded', 'no model is loaded');
      const { shape } = report;
      const bad = labels.find((id) => !Number.isInteger(id) || id < 0 || id >= shape.vocabSize);
      if (bad !== undefined) {
        throw new RuvLLMError('invalid_token', `token ${bad} is outside the vocabulary of ${shape.vocabSize}`);
      }
      const examiner = createExaminer(labels, shape.embeddingDim, Math.min(numTop, shape.vocabSize));
      const given = { maxTokens: labels.length, stopIds: new Set<number>(), retention: 'ordinary' } as const;
      return { ...request, ...given, sampler: examiner, examiner };
    });
  }

  function start(id: number, adapters: readonly RequestAdapter[], request: () => EngineRequest): void {
    try {
      if (engine === null || isDisposing) throw new RuvLLMError('not_loaded', 'no model is loaded');
      if (engine.awaitsPause(adapters)) {
        awaitingPause.add(id);
        return whenNoStepRuns(() => {
          if (awaitingPause.delete(id)) start(id, adapters, request);
          return true;
        });
      }
      engine.add(request());
      startLoop();
    } catch (error) {
      post({ type: 'events', events: [{ type: 'failed', id, error: serializeError(error) }] });
    }
  }

  /** Adapters move pages, or free memory that a step may still read. */
  function runBetweenSteps(): void {
    for (const task of betweenSteps.splice(0)) if (!task()) betweenSteps.push(task);
  }

  function whenNoStepRuns(task: () => boolean): void {
    betweenSteps.push(task);
    if (looping !== null) return;
    runBetweenSteps();
    if (engine !== null) postBlocks(engine);
  }

  function loadAdapter({ id, adapter }: Extract<ClientMessage, { type: 'loadAdapter' }>): void {
    whenNoStepRuns(() => {
      try {
        if (engine === null || isDisposing) throw new RuvLLMError('not_loaded', 'no model is loaded');
        const loaded = engine.loadAdapter(id, adapter);
        recovery?.keep(id, adapter);
        post({ type: 'adapterLoaded', id, ...loaded });
      } catch (error) {
        post({ type: 'adapterFailed', id, error: serializeError(error) });
      }
      return true;
    });
  }

  function unloadAdapter(id: number): void {
    whenNoStepRuns(() => {
      // They arrived first and only wait for their grammars.
      if (uncompiled.some(({ adapters }) => adapters.some((adapter) => adapter.id === id))) return false;
      engine?.unloadAdapter(id);
      recovery?.drop(id);
      return true;
    });
  }

  function eraseTenant({ callId, tenant, isWhole }: Extract<ClientMessage, { type: 'eraseTenant' }>): void {
    if (isWhole) {
      for (const { id } of uncompiled.filter((request) => request.tenant === tenant)) {
        uncompiled.splice(
          uncompiled.findIndex((request) => request.id === id),
          1,
        );
        const error = serializeError(new RuvLLMError('aborted', 'the tenant of this request was erased'));
        post({ type: 'events', events: [{ type: 'failed', id, error }] });
      }
    }
    whenNoStepRuns(() => {
      try {
        const events = engine?.eraseTenant(tenant, isWhole) ?? [];
        if (events.length > 0) post({ type: 'events', events });
        post({ type: 'tenantErased', callId, error: null });
      } catch (error) {
        post({ type: 'tenantErased', callId, error: serializeError(error) });
      }
      return true;
    });
  }

  /** Its first turn runs later: it may add a request, which must find that the loop runs, or two would step the engine. */
  function startLoop(): void {
    looping ??= Promise.resolve().then(loop).catch(options.onCrash);
  }

  async function loop(): Promise<void> {
    while (engine !== null && (engine.hasWork || uncompiled.length > 0 || engine.hasBackgroundWork)) {
      if (isDisposing) break;
      numTurns++;
      runBetweenSteps();
      if (uncompiled.length === 0) await waitForSamples(engine);
      if (engine.hasWork) {
        const events = await engine.step();
        if (events.length > 0) post({ type: 'events', events });
        if (engine.lost !== null) {
          ({ engine, report } = await recovery!.replace(engine, engine.lost));
          post({ type: 'blocks', events: [{ type: 'cleared' }] });
          continue;
        }
      } else if (uncompiled.length === 0) {
        engine.workInBackground();
      }
      postBlocks(engine);
      compileNext();
      // Yields, or an abort would wait until all work is done.
      await options.yieldToMessages();
    }
    looping = null;
    runBetweenSteps();
    if (engine !== null) postBlocks(engine);
    if (engine !== null) checkNowAndThen(engine);
  }

  function postBlocks(engine: Engine): void {
    const events = engine.takeBlockEvents();
    if (events.length > 0) post({ type: 'blocks', events });
  }

  /** Without a limit, neither messages nor timeouts would be noticed. */
  async function waitForSamples(engine: Engine): Promise<void> {
    const { awaited } = engine;
    if (awaited === null) return;
    await Promise.race([awaited.next, options.samplers!.sleep(awaited.isIdle ? MAX_IDLE_MS : MAX_WAIT_MS)]);
  }

  /** Checked rarely: with 100,000 pages it takes longer than a short answer. */
  function checkNowAndThen(engine: Engine): void {
    if (now() < nextCheckMs) return;
    nextCheckMs = now() + CHECK_EVERY_MS;
    checkEngine(engine);
  }

  async function dispose(): Promise<void> {
    isDisposing = true;
    await loading;
    await looping;
    await engine?.dispose();
    engine = null;
    await samplers?.dispose();
    post({ type: 'disposed' });
  }

  const handlers: Handlers = {
    load({ spec }) {
      assert(loading === null, 'an engine server loads one model');
      loading = load(spec);
    },
    generate: ({ request }) => generate(request),
    embed: ({ request }) => embed(request),
    examine: ({ request }) => examine(request),
    vocabulary({ vocabulary }) {
      constraints.setVocabulary(vocabulary);
      samplers?.setVocabulary(vocabulary);
    },
    tokenTable({ table }) {
      constraints.setTable(table);
      samplers?.setTable(table);
    },
    abort({ id }) {
      const at = uncompiled.findIndex((request) => request.id === id);
      if (at >= 0) uncompiled.splice(at, 1);
      else if (!awaitingPause.delete(id)) engine?.abort(id);
    },
    loadAdapter,
    unloadAdapter: ({ id }) => unloadAdapter(id),
    stats({ callId }) {
      if (engine !== null) post({ type: 'stats', callId, stats: engine.stats() });
    },
    pulse: () => post({ type: 'pulse', numTurns, isIdle: looping === null }),
    prefixes({ callId, query }) {
      if (engine !== null) post({ type: 'prefixes', callId, report: engine.prefixes(query) });
    },
    cachedTokens({ callId, prompt }) {
      if (engine !== null) post({ type: 'cachedTokens', callId, numTokens: engine.cachedTokens(prompt) });
    },
    eraseTenant,
    countTenant({ callId, tenant }) {
      post({ type: 'tenantCounted', callId, numItems: engine?.countTenant(tenant) ?? 0 });
    },
    dispose: () => void dispose().catch(options.onCrash),
  };

  return {
    handle: (message) => (handlers[message.type] as (message: ClientMessage) => void)(message),
  };
}
