import { type Context, Hono } from 'hono';
import type { Federation, Memory } from '../runtime/lower-layers.ts';
import { createBatches } from './batches/index.ts';
import type { SendLine } from './batches/run-line.ts';
import { type BrowserGuardOptions, createBrowserGuard } from './browser-guard.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { type ErasurePart, isWholeTenant } from '../core/erasure.ts';
import type { DashboardFiles } from './dashboard-files.ts';
import { dispatch } from './dispatch.ts';
import { createSecondOpinions, type OpinionOptions } from '../runtime/quality/second-opinions.ts';
import { createRequestPipeline } from '../runtime/requests/request-pipeline.ts';
import type { FleetNode } from './fleet/fleet-node.ts';
import { createGuard } from './guard.ts';
import type { KeyStore } from './keys/key-store.ts';
import { resolveServerLimits, type ServerLimits } from './limits.ts';
import { createLiveRequests } from '../runtime/requests/live-requests.ts';
import { createLiveHistory } from './live/history.ts';
import { createWatchers } from './live/watchers.ts';
import { type Logger, silentLogger } from './logger.ts';
import { openOtlp } from './telemetry/open-otlp.ts';
import type { OtlpOptions } from './telemetry/otlp-options.ts';
import { createOtlpTracer } from './telemetry/otlp-tracer.ts';
import { createServerMetrics } from './metrics/server-metrics.ts';
import type { McpAccess } from './mcp/access.ts';
import type { ModelCatalog } from './model-catalog.ts';
import type { ModelFiles } from './model-files.ts';
import type { ModelLibrary } from './model-library.ts';
import type { ModelHost } from '../runtime/requests/model-host.ts';
import { createPullJobs } from './pull-jobs.ts';
import { createChatStore } from './chats/chat-store.ts';
import { createObjectStore } from './stored/object-store.ts';
import { createProcessRecords } from './stored/process-records.ts';
import type { Route } from './route.ts';
import { createLearningControl } from '../runtime/learning/operations/control.ts';
import { createFeedbackLog } from '../runtime/learning/feedback-log.ts';
import type { Learning } from '../runtime/learning/learning.ts';
import type { Routing } from '../runtime/routing/types.ts';
import { createRequestMemory } from '../runtime/memory/request-memory.ts';
import { dashboardRoutes, runningRoutes } from './routes/dashboard.ts';
import { ROUTES } from './routes/table.ts';
import type { Services } from './services.ts';
import { createProblemLog, type Preparation, type StateProblem } from './state-problems.ts';
import { createAdapterScales } from '../runtime/requests/adapter-scales.ts';
import { createAdmission } from '../runtime/requests/admission.ts';
import { silentTracer, type Tracer } from '../runtime/requests/tracing.ts';

/** Components and settings of a server. */
export interface ServerOptions {
  readonly version: string;
  /** The name of this machine, by which operators tell several servers apart. Default `localhost`. */
  readonly nodeName?: string;
  readonly models: ModelHost;
  readonly keys: KeyStore;
  /** Whether requests without a key are accepted. */
  readonly isOpen: boolean;
  readonly browsers: BrowserGuardOptions;
  readonly limits?: Partial<ServerLimits>;
  /** Whether unknown fields of requests are a 400. Default false: they are ignored and named in `x-ignored-fields`. */
  readonly strict?: boolean;
  /** Whether requests for unknown models are answered by the first one. Default false: they are a 404. */
  readonly modelFallback?: boolean;
  /** Default: the process's. */
  readonly clock?: Clock;
  /** Default: silent. */
  readonly logger?: Logger;
  /** Default: that of `otlp`, or else none. */
  readonly tracer?: Tracer;
  /** Where spans and metrics are sent by OTLP. Default: nowhere. */
  readonly otlp?: OtlpOptions | null;
  /** The server takes ownership and closes it. Default: none. */
  readonly memory?: Memory | null;
  /** Requires the memory. The server takes ownership and closes it. Default: none. */
  readonly learning?: Learning | null;
  /** Whether corrections are recalled; with learning, its option counts. Default true. */
  readonly corrections?: boolean;
  /** Further answers that the estimate of an answer's quality compares it with. Default: none. */
  readonly quality?: OpinionOptions;
  /** Chooses the model of requests to the router's alias. Default: none. */
  readonly routing?: Routing | null;
  /** Shares what tenants learned with trusted nodes. Requires learning. Default: none. */
  readonly federation?: Federation | null;
  /** Tells gateways about this node. Default: it belongs to no fleet. */
  readonly fleet?: FleetNode | null;
  /** Free bytes on the disk of the server's data; null: not known. Default: not known. */
  readonly freeDiskBytes?: () => Promise<number | null>;
  /** Problems of state that the server does not see itself. Default: none. */
  readonly problems?: () => readonly StateProblem[];
  /** Parts that are not ready yet. Default: none. */
  readonly preparing?: () => readonly Preparation[];
  /** The page at `/`. Default: none. */
  readonly dashboard?: DashboardFiles | null;
  /** Models that can be added while the server runs. Default: none. */
  readonly catalog?: ModelCatalog | null;
  /** Names of models and files of this machine, for Ollama's API. Default: none. */
  readonly library?: ModelLibrary | null;
  /** MCP servers whose tools models may use. The server takes ownership and closes them. Default: none. */
  readonly mcp?: McpAccess | null;
  /** Reads files of models for keys with the scope `download`. Default: none, and they cannot be downloaded. */
  readonly modelFiles?: ModelFiles | null;
  /** Finds the adapter that a client names by a path; throws for files that clients must not name. Default: none can be loaded. */
  readonly findAdapter?: ((path: string) => Promise<string>) | null;
}

/** A server without a socket: requests in, responses out. */
export interface Server {
  fetch(request: Request): Promise<Response>;
  readonly services: Services;
  /** Is not healthy any more, so that new requests go elsewhere; those that come are answered until `shutDown`. */
  leave(): void;
  /** Rejects new requests, waits up to `deadlineMs` for running ones, aborts the others, unloads the models and closes the memory. */
  shutDown(deadlineMs: number): Promise<void>;
}

/** Part of the shutdown time for the last spans. */
const MAX_FLUSH_MS = 2000;

/** Creates a server. */
export function createServer(options: ServerOptions): Server {
  const { version, models, keys, isOpen, browsers, clock = systemClock, logger = silentLogger } = options;
  const { otlp = null, memory = null, learning = null, routing = null } = options;
  const { catalog = null, library = null, dashboard = null, mcp = null } = options;
  const limits = resolveServerLimits(options.limits);
  const admission = createAdmission(limits, clock);
  const metrics = createServerMetrics(clock, { hasGenai: otlp !== null && otlp.metricsUrl !== null });
  const exporter =
    otlp === null ? null : openOtlp({ otlp, version, metrics, clock, logger, nodeName: options.nodeName });
  const tracer = options.tracer ?? (exporter === null ? silentTracer : createOtlpTracer(exporter, clock));
  const live = createLiveRequests(clock);
  const { freeDiskBytes: readFreeDisk = async () => null } = options;
  const history = createLiveHistory({ models, metrics, memory, clock, readFreeDisk });
  const pulls = catalog === null ? null : createPullJobs(catalog, clock);
  const report = (reason: string): void => logger.log('error', 'memory', { reason });
  const schedule = (task: () => void, delayMs: number) => clock.setTimer(delayMs, task);
  // Without learning, feedback is stored all the same.
  const feedback =
    learning ??
    (memory === null
      ? null
      : createFeedbackLog({ memory, schedule, report, corrections: options.corrections ?? true }));
  const requestMemory =
    memory === null
      ? null
      : createRequestMemory(memory, { now: clock.now, wallClock: clock.wallClock, report, learning: feedback });
  const shutdown = new AbortController();
  const control =
    memory === null || learning === null
      ? null
      : createLearningControl({
          learning,
          memory,
          federation: options.federation ?? null,
          models: () => models.list().map(({ id }) => id),
          async withModel(name, work) {
            const lease = await models.acquire(name, { signal: shutdown.signal, waitMs: limits.modelWaitMs });
            try {
              return await work(lease.id);
            } finally {
              lease.release();
            }
          },
        });
  const stored = createObjectStore({
    limits,
    clock,
    report,
    ...(memory === null
      ? { records: createProcessRecords(clock) }
      : { records: memory.stored, isShared: memory.watch === null, isErasing: memory.erasure.isErasing }),
  });
  const chats =
    memory === null
      ? null
      : createChatStore({ records: memory.stored, now: () => clock.wallClock(), isErasing: memory.erasure.isErasing });
  const send: SendLine = async (endpoint, body, batchCaller, { signal, onFailure }) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': String(new TextEncoder().encode(body).length),
    };
    const request = new Request(`http://batch.invalid${endpoint}`, { method: 'POST', headers, body, signal });
    const route = ROUTES.find(({ method, path }) => method === 'POST' && path === endpoint) ?? null;
    return dispatch(route, { request, params: {}, services, batchCaller, onFailure });
  };
  const batches = memory === null ? null : createBatches({ memory, limits, clock, send, report });
  const rates: ErasurePart = {
    name: 'request rates',
    erase: async (subject) => (isWholeTenant(subject) ? admission.forget(subject.tenant) : undefined),
    count: async () => 0,
  };
  const unregister = [
    rates,
    stored.erasure,
    live.erasure,
    models.erasure,
    ...(chats === null ? [] : [chats.erasure]),
    ...(batches === null ? [] : [batches.erasure]),
  ].map((part) => memory?.erasure.register(part));
  const adapterScales = createAdapterScales();
  const services: Services = {
    version,
    nodeName: options.nodeName ?? 'localhost',
    models,
    keys,
    guard: createGuard({ keys, isOpen }),
    browsers: createBrowserGuard(browsers),
    admission,
    limits,
    metrics,
    live,
    history,
    watchers: createWatchers(),
    catalog,
    pulls,
    library,
    modelFiles: options.modelFiles ?? null,
    findAdapter: options.findAdapter ?? null,
    stored,
    chats,
    batches,
    feedback,
    memory,
    openTools: (owner) => requestMemory?.openTools(owner) ?? null,
    mcp,
    learning: control,
    routing,
    fleet: options.fleet ?? null,
    isStrict: options.strict ?? false,
    hasModelFallback: options.modelFallback ?? false,
    clock,
    logger,
    problems: createProblemLog({ memory, keys, others: options.problems ?? (() => []), logger }),
    preparing: options.preparing ?? (() => []),
    pipeline: createRequestPipeline({
      models,
      admission,
      limits,
      meters: metrics,
      live,
      clock,
      tracer,
      memory: requestMemory,
      routing,
      adapterScales,
      opinions: createSecondOpinions({ models, limits }, options.quality ?? {}),
    }),
    adapterScales,
    startedMs: clock.wallClock(),
  };

  exporter?.watchMetrics(() => metrics.collect(services));

  const app = new Hono();
  // Paths without parameters first: `/v1/responses/input_tokens` must not match `/v1/responses/:id`.
  const table = [...ROUTES, ...(dashboard === null ? runningRoutes : dashboardRoutes(dashboard))];
  const paths = [...new Set(table.map(({ path }) => path))].sort(
    (a, b) => Number(a.includes(':')) - Number(b.includes(':')),
  );
  for (const path of paths) {
    const routes = table.filter((route) => route.path === path);
    for (const route of routes) {
      app.on(route.method, path, (context: Context) =>
        dispatch(route, { request: context.req.raw, params: context.req.param(), services }),
      );
    }
    // The path of a route with another method.
    const allow = methodsOf(routes);
    app.all(path, (context) => dispatch(null, { request: context.req.raw, params: {}, services, allow }));
  }
  app.notFound((context) => dispatch(null, { request: context.req.raw, params: {}, services }));

  return {
    fetch: async (request) => app.fetch(request),
    services,
    leave: admission.leave,
    async shutDown(deadlineMs) {
      admission.close();
      history.close();
      // Before the wait for running requests: lines of batches are continued by the next process.
      await batches?.close();
      await admission.empty(deadlineMs);
      try {
        // First, because a training run holds its model.
        shutdown.abort();
        for (const stop of unregister) stop?.();
        await pulls?.close();
        await control?.runs.close();
        await models.dispose();
        await mcp?.pool.close();
        await stored.close();
        await requestMemory?.close();
        if (learning === null) await feedback?.close();
      } finally {
        try {
          await control?.close();
        } finally {
          // Last, because all other parts may still write to it.
          await memory?.close();
          await exporter?.close(Math.min(deadlineMs, MAX_FLUSH_MS));
        }
      }
    },
  };
}

/** The methods of a path, for the header `allow`. */
function methodsOf(routes: readonly Route[]): readonly string[] {
  const methods: string[] = routes.map(({ method }) => method);
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'];
}
