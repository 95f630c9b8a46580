import type { Clock } from '../core/clock.ts';
import type { Logger } from '../server/logger.ts';
import { type GatewayNode, isBehind, type NodeHealth, setHealth } from './node-table.ts';
import { readUpTo } from './read-body.ts';
import type { Upstream } from './types.ts';

export interface ProbeOptions {
  readonly nodes: readonly GatewayNode[];
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time between two questions to a node that is up. */
  readonly intervalMs: number;
  /** The header by which a gateway that is a node by mistake notices it. */
  readonly via: string;
  /** Reads the state of a node of a fleet; throws if the node does not belong to it. Null: nodes are not checked. */
  readonly checkNode: ((node: GatewayNode, signal: AbortSignal) => Promise<void>) | null;
}

/** The health of nodes, asked again and again. */
export interface Probes {
  /** Asks all nodes that are not up, at once. */
  askNow(): Promise<void>;
  /** Asks nodes that have not reported this release of published adapters. */
  askBehind(release: number): Promise<void>;
  /** Asks a node whose connection broke; until it answers, it gets no requests. */
  doubt(node: GatewayNode, reason: string): void;
  /** Asks a node that joined, again and again. */
  add(node: GatewayNode): void;
  remove(node: GatewayNode): void;
  stop(): void;
}

const TIMEOUT_MS = 2000;
/** A busy machine may miss one answer. */
const MAX_MISSED = 2;
/** Delays after a node went down: doubled each time. */
const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;
const MAX_BODY_BYTES = 4096;

export function startProbes(options: ProbeOptions): Probes {
  const { nodes, clock } = options;
  const timers = new Map<GatewayNode, () => void>();
  const asking = new Map<GatewayNode, Promise<void>>();
  const missed = new Map<GatewayNode, number>();
  let isStopped = false;

  async function ask(node: GatewayNode): Promise<void> {
    const before = node.health;
    try {
      const { health, reason } = await askHealth(node, options);
      missed.set(node, 0);
      setHealth(node, health, reason);
    } catch (error) {
      const count = (missed.get(node) ?? 0) + 1;
      missed.set(node, count);
      // A refused connection is certain, a missing answer is not.
      const isCertain = (error as { data?: { isSent?: unknown } }).data?.isSent === false;
      if (isCertain || count >= MAX_MISSED || before !== 'up') setHealth(node, 'down', (error as Error).message);
    }
    if (node.health !== before) {
      const level = node.health === 'up' ? 'info' : 'warn';
      options.logger.log(level, 'node', { node: node.name, url: node.url, health: node.health, reason: node.reason });
    }
  }

  function delayOf(node: GatewayNode): number {
    if (node.health === 'up') return options.intervalMs;
    return Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(10, missed.get(node) ?? 0));
  }

  function run(node: GatewayNode): Promise<void> {
    const running = asking.get(node);
    if (running !== undefined) return running;
    timers.get(node)?.();
    const asked = ask(node).finally(() => {
      asking.delete(node);
      if (!isStopped && nodes.includes(node))
        timers.set(
          node,
          clock.setTimer(delayOf(node), () => void run(node)),
        );
    });
    asking.set(node, asked);
    return asked;
  }

  for (const node of nodes) void run(node);
  return {
    async askNow() {
      await Promise.all(nodes.filter(({ health }) => health !== 'up').map(run));
    },
    async askBehind(release) {
      await Promise.all(nodes.filter((node) => node.health === 'up' && isBehind(node, release)).map(run));
    },
    doubt(node, reason) {
      if (node.health === 'up') setHealth(node, 'unknown', reason);
      void run(node);
    },
    add(node) {
      void run(node);
    },
    remove(node) {
      timers.get(node)?.();
      timers.delete(node);
      missed.delete(node);
    },
    stop() {
      isStopped = true;
      for (const cancel of timers.values()) cancel();
    },
  };
}

async function askHealth(
  node: GatewayNode,
  { upstream, clock, checkNode, via }: ProbeOptions,
): Promise<{ health: NodeHealth; reason: string | null }> {
  const limit = new AbortController();
  const cancel = clock.setTimer(TIMEOUT_MS, () => limit.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)));
  const { signal } = limit;
  try {
    const asked = { method: 'GET', target: '/health', headers: { via }, body: new Uint8Array(), signal };
    const { status, body } = await upstream.send(node.url, asked);
    const { bytes, rest } = await readUpTo(body, MAX_BODY_BYTES);
    if (rest !== null) await rest.return?.();
    const text = new TextDecoder().decode(bytes);
    if (status === 503) {
      const isEnding = text.includes('shutting down');
      return { health: isEnding ? 'draining' : 'loading', reason: isEnding ? 'it is shutting down' : 'it is loading' };
    }
    if (status === 508) return { health: 'refused', reason: 'it is a gateway; a node is a process of ruvllm serve' };
    if (status !== 200) return { health: 'refused', reason: `GET /health answered ${status}` };
    if (checkNode === null) return { health: 'up', reason: null };
    try {
      await checkNode(node, signal);
      return { health: 'up', reason: null };
    } catch (error) {
      if (signal.aborted) throw error;
      return { health: 'refused', reason: (error as Error).message };
    }
  } finally {
    cancel();
  }
}
