import { type Clock, systemClock } from '../core/clock.ts';
import { RuvLLMError, traceOf } from '../core/errors.ts';
import { createAdmission } from '../runtime/requests/admission.ts';
import { type BrowserGuardOptions, createBrowserGuard } from '../server/browser-guard.ts';
import { describeFailure, refusal } from '../server/errors.ts';
import { createGuard, type RouteScope } from '../server/guard.ts';
import type { KeyStore } from '../server/keys/key-store.ts';
import { type Logger, silentLogger } from '../server/logger.ts';
import { ODD_PATH, readPath } from '../server/request-path.ts';
import type { Route } from '../server/route.ts';
import { ROUTES } from '../server/routes/table.ts';
import { isAnthropicClient } from '../server/wire/anthropic/client.ts';
import { anthropicErrors } from '../server/wire/anthropic/error-body.ts';
import { openaiErrors } from '../server/wire/openai/error-body.ts';
import type { Affinity } from './affinity.ts';
import { silentTracer, type Tracer } from '../runtime/requests/tracing.ts';
import { openOtlp } from '../server/telemetry/open-otlp.ts';
import type { OtlpOptions } from '../server/telemetry/otlp-options.ts';
import { createOtlpTracer } from '../server/telemetry/otlp-tracer.ts';
import { createForwarder } from './forward.ts';
import { createGatewayMetrics, type GatewayMetrics } from './gateway-metrics.ts';
import { type GatewayLimits, resolveGatewayLimits } from './gateway-options.ts';
import { createRouteMatcher } from './match-route.ts';
import { createHeldBytes } from './held-bytes.ts';
import { listModels } from './model-list.ts';
import { createNode, type GatewayNode } from './node-table.ts';
import { startProbes } from './probe-nodes.ts';
import { readHints } from './request-hints.ts';
import { beginsAtOnce, isNodeRoute, isRepeatable } from './route-kinds.ts';
import type { FleetKeys } from '../server/fleet/fleet-keys.ts';
import type { FleetBus } from './shared/fleet-bus.ts';
import { followNodes } from './shared/membership.ts';
import { followCommits } from './releases/release-view.ts';
import type { ReleaseStore } from './releases/release-store.ts';
import { createTenantUsage } from './shared/tenant-usage.ts';
import { isSilent } from './silence.ts';
import { openSpan } from './request-span.ts';
import type { GatewayRequest, GatewayResponse, Upstream } from './types.ts';
import { addVia, createGatewayId, isFromGateway, isFromSelf } from './via.ts';

export interface GatewayOptions {
  /** Addresses of the nodes, without a path. */
  readonly nodes: readonly string[];
  readonly upstream: Upstream;
  readonly keys: KeyStore;
  /** Whether requests without a key are accepted. */
  readonly isOpen: boolean;
  readonly browsers: BrowserGuardOptions;
  readonly limits?: Partial<GatewayLimits>;
  /** Knows which node has a prompt in its prefix cache. Default: none, and only load counts. */
  readonly openAffinity?: (nodes: readonly GatewayNode[], metrics: GatewayMetrics) => Affinity;
  /** Connects this gateway with nodes that announce themselves and with other gateways. Default: none. */
  readonly shared?: { readonly bus: FleetBus; readonly keys: FleetKeys; readonly releases?: ReleaseStore } | null;
  /** Default: the process's. */
  readonly clock?: Clock;
  /** The server's; for spans. Default: none. */
  readonly version?: string;
  readonly nodeName?: string;
  /** Where spans and metrics are sent by OTLP. Default: nowhere. */
  readonly otlp?: OtlpOptions | null;
  /** Default: that of `otlp`, or else none. */
  readonly tracer?: Tracer;
  /** Default: silent. */
  readonly logger?: Logger;
  /** Numbers in [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
}

/** One address in front of several nodes. */
export interface Gateway {
  readonly nodes: readonly Readonly<GatewayNode>[];
  readonly services: { readonly metrics: GatewayMetrics; readonly logger: Logger };
  readonly limits: GatewayLimits;
  /** Never rejects: failures are responses, except of a client that left. */
  handle(request: GatewayRequest): Promise<GatewayResponse>;
  /** Resolves when every node has answered once, or failed. */
  ready(): Promise<void>;
  /** Is not healthy any more, so that new requests go elsewhere; those that come are answered until `shutDown`. */
  leave(): void;
  /** Rejects new requests and waits up to `deadlineMs` for running ones. */
  shutDown(deadlineMs: number): Promise<void>;
}

/** Part of the shutdown time for the last spans. */
const MAX_FLUSH_MS = 2000;
/** Characters per token of text, for requests whose prompt no node has counted yet. */
const CHARS_PER_TOKEN = 4;

/** Paths that the gateway answers itself, and the scope that each requires. */
export const OWN_SCOPES: Readonly<Record<string, RouteScope>> = {
  '/health': 'public',
  '/metrics': 'operate',
  '/fleet': 'operate',
};

/** Creates a gateway, which asks its nodes for their health from now on. */
export function createGateway(options: GatewayOptions): Gateway {
  const {
    upstream,
    keys,
    isOpen,
    shared = null,
    clock = systemClock,
    logger = silentLogger,
    random = Math.random,
    otlp = null,
  } = options;
  const id = createGatewayId();
  const limits = resolveGatewayLimits(options.limits);
  const nodes = options.nodes.map((url, index) => createNode(String(index + 1), url, -random()));
  const metrics = createGatewayMetrics(nodes);
  const exporter =
    otlp === null
      ? null
      : openOtlp({ otlp, version: options.version ?? '', service: 'ruvllm-gateway', nodeName: options.nodeName, metrics, clock, logger }); // prettier-ignore
  exporter?.watchMetrics(async () => metrics.collect());
  const tracer = options.tracer ?? (exporter === null ? silentTracer : createOtlpTracer(exporter, clock));
  const affinity = options.openAffinity?.(nodes, metrics) ?? null;
  const guard = createGuard({ keys, isOpen });
  const browsers = createBrowserGuard(options.browsers);
  const usage = shared === null ? null : createTenantUsage({ ...shared, clock, onRefused: metrics.countRefusedNote });
  const numGateways = (): number => 1 + (usage?.numOthers ?? 0);
  const admission = createAdmission(limits, clock, usage ?? undefined);
  const heldBytes = createHeldBytes(limits.maxHeldBytes);
  const match = createRouteMatcher(ROUTES);
  const probes = startProbes({
    nodes,
    upstream,
    clock,
    logger,
    intervalMs: limits.healthIntervalMs,
    via: addVia(new Headers(), id),
    checkNode: affinity === null ? null : affinity.checkNode,
  });
  const releases =
    shared?.releases === undefined
      ? null
      : followCommits({ store: shared.releases, keys: shared.keys, onCommit, onRefused: metrics.countRefusedNote });
  function onCommit(release: number): void {
    // What a node did not serve before, it may serve now.
    for (const node of nodes) node.lackedModels.clear();
    void probes.askBehind(release);
  }
  const forwarder = createForwarder({
    nodes,
    upstream,
    clock,
    numGateways,
    releases,
    nodeWaitMs: limits.nodeWaitMs,
    firstByteMs: limits.firstByteMs,
    answerMs: limits.answerMs,
    askNodes: probes.askNow,
    askBehind: probes.askBehind,
    doubt: probes.doubt,
    onRetry(node, reason) {
      metrics.countRetry(node.name);
      logger.log('warn', 'retry', { node: node.name, reason });
    },
    onSilent({ name, url }) {
      logger.log('warn', 'node', { node: name, url, health: 'silent', reason: SILENT });
    },
  });

  let numJoined = nodes.length;
  function join(url: string): void {
    if (nodes.some((node) => node.url === url)) return;
    const node = createNode(String(++numJoined), url, -random());
    nodes.push(node);
    probes.add(node);
    logger.log('info', 'node', { node: node.name, url, health: 'joined', reason: null });
  }
  function leave(url: string): void {
    const index = nodes.findIndex((node) => node.url === url);
    // Nodes of the list stay: an address that someone wrote down is asked for ever.
    if (index < 0 || options.nodes.includes(url)) return;
    const [node] = nodes.splice(index, 1);
    probes.remove(node!);
    affinity?.forgetNode(node!);
    logger.log('info', 'node', { node: node!.name, url, health: 'left', reason: null });
  }
  const isUp = (url: string): boolean => nodes.some((node) => node.url === url && node.health === 'up');
  const members = shared === null ? null : followNodes({ ...shared, clock, onJoin: join, onLeave: leave, isUp, onRefused: metrics.countRefusedNote }); // prettier-ignore

  function answerOwn(path: string, headers: Headers): GatewayResponse {
    if (path === '/metrics') return text(200, metrics.write(), 'text/plain; version=0.0.4; charset=utf-8');
    if (path === '/fleet') {
      const release = releases?.number ?? 0;
      return json(200, {
        nodes: nodes.map((node) => describeNode(node, clock.now())),
        gateways: numGateways(),
        texts: affinity?.numTexts ?? 0,
        release,
      });
    }
    // Two gateways that are nodes of each other would keep each other up.
    if (isFromGateway(headers)) return json(508, { status: 'this is a gateway, and no node' });
    if (admission.isLeaving) return json(503, { status: 'shutting down' });
    const numUp = nodes.filter(({ health }) => health === 'up').length;
    const status = numUp === 0 ? 'no node is up' : 'ok';
    const degraded = shared === null || shared.bus.isConnected ? [] : ['nats'];
    return json(numUp === 0 ? 503 : 200, { status, nodes: nodes.length, nodes_up: numUp, degraded });
  }

  /** Counts a request until the returned function is called, once. */
  function enter(tenant: string): () => void {
    const end = admission.enter(tenant);
    const endShared = usage?.enter(tenant) ?? ((): void => {});
    return () => {
      end();
      endShared();
    };
  }

  async function answer(request: GatewayRequest, path: string | null, route: Route | null, requestId: string) {
    if (path === null) throw refusal(...ODD_PATH);
    const isGet = request.method === 'GET' || request.method === 'HEAD';
    const ownScope = isGet && Object.hasOwn(OWN_SCOPES, path) ? OWN_SCOPES[path]! : null;
    if (isFromSelf(request.headers, id)) {
      throw refusal(508, 'gateway_loop', 'the request came back to this gateway: one of its nodes leads to it', {
        type: 'server_error',
      });
    }
    const { headers, method } = request;
    browsers.check({ headers, method, url: `http://${headers.get('host') ?? ''}/` });
    const { tenant } = await guard.admit(request.headers, ownScope ?? route?.scope ?? 'read');
    if (ownScope !== null) return answerOwn(path, request.headers);
    if (route === null) throw unknownRoute(request.method, path, match(request.method, path).allow);
    if (isNodeRoute(route)) {
      const message = `${path} concerns one node; send it to the address of the node`;
      throw refusal(501, 'unsupported', message);
    }
    // Before the body: a request that will be refused must not fill the memory.
    const leave = enter(tenant);
    if (route.path === '/v1/models' || route.path === '/models') {
      return listModels({ nodes, upstream, clock }, request, addVia(request.headers, id)).finally(leave);
    }
    const span = openSpan(tracer, route, request, requestId);
    const held = heldBytes.open(tenant);
    let isOver = false;
    const end = (error: unknown = null): void => {
      if (isOver) return;
      isOver = true;
      leave();
      held.release();
      span.end(error);
    };
    try {
      const body = await request.readBody(held.add);
      const { model, promptText, stream } = readHints(body, request.headers.get('content-type'));
      const plan = affinity?.plan({ tenant, model, promptText }) ?? null;
      return await forwarder.forward({
        request,
        body,
        route,
        requestId,
        model,
        choice: plan ?? { numTokens: Math.ceil(promptText.length / CHARS_PER_TOKEN), warmTokens: () => 0 },
        isRepeatable: isRepeatable(route),
        beginsAtOnce: beginsAtOnce(route, stream),
        headers: { via: addVia(request.headers, id), ...span.headers, ...plan?.headers },
        onAnswer(node, answered) {
          span.answer(node.name, answered.status);
          if (plan === null) return;
          metrics.countWarmTokens(Math.min(plan.numTokens, plan.warmTokens(node)), plan.numTokens);
          plan.learn(node, answered.headers);
        },
        onBroken: span.end,
        onEnd: end,
      });
    } catch (error) {
      end(error);
      throw error;
    }
  }

  async function handle(request: GatewayRequest): Promise<GatewayResponse> {
    const startMs = clock.now();
    const requestId = crypto.randomUUID();
    const path = readPath(request.target);
    const route = path === null ? null : match(request.method, path).route;
    let response: GatewayResponse;
    try {
      response = await answer(request, path, route, requestId);
    } catch (error) {
      response = failureOf(error, route, request, requestId);
      const isBug = !(error instanceof RuvLLMError);
      if (isBug) logger.log('error', 'gateway', { requestId, reason: traceOf(error) });
    }
    const elapsedMs = clock.now() - startMs;
    metrics.countRequest(route?.path ?? 'unknown', response.status, elapsedMs / 1000);
    logger.log(response.status >= 500 ? 'warn' : 'info', 'request', {
      requestId,
      method: request.method,
      route: route?.path ?? null,
      status: response.status,
      node: response.headers['x-ruvllm-node'] ?? null,
      ms: Math.round(elapsedMs * 100) / 100,
    });
    const cors = browsers.headersFor(request);
    return request.headers.has('origin') ? { ...response, headers: { ...response.headers, ...cors } } : response;
  }

  return {
    nodes,
    services: { metrics, logger },
    limits,
    handle,
    ready: probes.askNow,
    leave: admission.leave,
    async shutDown(deadlineMs) {
      admission.close();
      await admission.empty(deadlineMs);
      members?.stop();
      usage?.stop();
      probes.stop();
      affinity?.close();
      upstream.close();
      await exporter?.close(Math.min(deadlineMs, MAX_FLUSH_MS));
    },
  };
}

const SILENT = 'it does not answer the requests that it accepts';

const describeNode = (node: GatewayNode, nowMs: number): object => {
  const { name, url, health, reason, numRequests, numOtherRequests, fleet, blocks } = node;
  return {
    node: name,
    url,
    health,
    reason: reason ?? (isSilent(node, nowMs) ? SILENT : null),
    requests: numRequests,
    other_requests: numOtherRequests,
    blocks: blocks.size,
    version: fleet?.version ?? null,
    release: fleet?.release ?? null,
    models: fleet?.models.map(({ id, modelHash, adapters }) => ({ id, hash: modelHash, adapters })) ?? null,
  };
};

function text(status: number, content: string, type: string): GatewayResponse {
  return { status, headers: { 'content-type': type }, body: new TextEncoder().encode(content) };
}

function json(status: number, value: object): GatewayResponse {
  return text(status, JSON.stringify(value), 'application/json');
}

function unknownRoute(method: string, path: string, allow: readonly string[]): Error {
  const shown = JSON.stringify(path.slice(0, 200));
  if (allow.length === 0) return refusal(404, 'unknown_url', `${method} ${shown} not found`);
  return refusal(405, 'method_not_allowed', `${shown} does not support ${method}; use ${allow.join(', ')}`);
}

/** The response of a failure, in the wire format of its route. */
function failureOf(error: unknown, route: Route | null, request: GatewayRequest, requestId: string): GatewayResponse {
  const failure = describeFailure(error);
  const isAnthropic = isAnthropicClient({ headers: request.headers, url: `http://gateway${request.target}` });
  const ofClient = isAnthropic ? anthropicErrors : openaiErrors;
  const errors = route !== null && route.errors !== openaiErrors ? route.errors : ofClient;
  const response = json(errors.status?.(failure) ?? failure.status, errors.body(failure, requestId));
  return {
    ...response,
    headers: {
      ...response.headers,
      'x-request-id': requestId,
      ...(failure.retryAfterSeconds === null ? {} : { 'retry-after': String(failure.retryAfterSeconds) }),
      ...(failure.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
      ...(failure.status >= 500 && failure.retryAfterSeconds === null ? { 'x-should-retry': 'false' } : {}),
    },
  };
}
