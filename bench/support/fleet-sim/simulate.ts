import { createRandom } from '../../../src/core/random.ts';
import type { Leave } from '../../../src/gateway/choose-node.ts';
import { createEventQueue } from './event-queue.ts';
import { createHolders } from './holders.ts';
import { createSimGateways } from './sim-gateways.ts';
import { createSimNodes, type Run } from './sim-nodes.ts';
import type { SimOptions } from './sim-options.ts';
import type { SimTrace } from './trace.ts';

export interface SimResult {
  /** Time to first token of each request; NaN: it got none. */
  readonly ttftMs: Float64Array;
  readonly cachedTokens: Int32Array;
  /** The node that answered each request; -1: none. */
  readonly nodes: Int32Array;
  /** Time that each node computed prompts. */
  readonly busyMs: Float64Array;
  /** Batches of events that each gateway receives, and the blocks in them. */
  readonly numBatches: number;
  readonly numChanges: number;
  /** Requests that were sent to another node, and answers that broke off. */
  readonly numRetried: number;
  readonly numBroken: number;
}

interface Active {
  readonly request: number;
  readonly gateway: number;
  readonly node: number;
  readonly leave: Leave;
  hasFirst: boolean;
  isLost: boolean;
}

/** Slices of nodes that are probed at different times. */
const NUM_SLICES = 10;

/** Replays a trace on simulated nodes behind simulated gateways. The same trace and options give the same result. */
export function simulate(trace: SimTrace, options: SimOptions): SimResult {
  const { numNodes, numGateways, policy, storm } = options;
  const nodes = createSimNodes(trace, options);
  const holders = createHolders(trace.numBlocks);
  const gateways = createSimGateways(trace, options, { holders, nodes });
  const ttftMs = new Float64Array(trace.numRequests).fill(NaN);
  const cachedTokens = new Int32Array(trace.numRequests);
  const chosenNodes = new Int32Array(trace.numRequests).fill(-1);
  const actives = Array.from({ length: numNodes }, () => new Set<Active>());
  const isUp = new Uint8Array(numNodes).fill(1);
  /** Runs of each node's process: events of an earlier one are not used. */
  const epochs = new Int32Array(numNodes);
  const lastMs = trace.atMs.at(-1) ?? 0;
  const counts = { numBatches: 0, numChanges: 0, numRetried: 0, numBroken: 0 };
  let nowMs = 0;
  const queue = createEventQueue((atMs) => (nowMs = atMs));

  function applyEvents(node: number, { stored, removed }: Run, isCurrent: boolean): void {
    if (isCurrent) for (const block of stored) holders.add(block, node);
    for (const block of removed) if (isCurrent || !nodes.caches[node]!.has(block)) holders.remove(block, node);
  }

  function publish(active: Active, run: Run): void {
    const { stored, removed } = run;
    if (stored.length + removed.length === 0) return;
    counts.numBatches += (stored.length > 0 ? 1 : 0) + (removed.length > 0 ? 1 : 0);
    counts.numChanges += stored.length + removed.length;
    if (policy !== 'affine') return;
    const epoch = epochs[active.node]!;
    queue.add(nowMs + options.eventDelayMs, () => applyEvents(active.node, run, epochs[active.node] === epoch));
  }

  function dispatch(request: number, gateway: number): void {
    const chosen = gateways.choose(gateway, request, nowMs);
    if (chosen === null) return;
    const { node, leave } = chosen;
    const run = nodes.start(node, request, nowMs);
    if (policy === 'oracle') applyEvents(node, run, true);
    const active: Active = { request, gateway, node, leave, hasFirst: false, isLost: false };
    actives[node]!.add(active);
    chosenNodes[request] = node;
    cachedTokens[request] = run.cachedTokens;
    queue.add(run.firstMs, () => {
      if (active.isLost) return;
      active.hasFirst = true;
      ttftMs[request] = nowMs - trace.atMs[request]!;
      leave.tokens();
      gateways.learn(gateway, request);
      publish(active, run);
    });
    queue.add(run.endMs, () => {
      if (active.isLost) return;
      leave.all();
      actives[node]!.delete(active);
      nodes.numRunning[node]!--;
    });
  }

  /** Requests without a first token go to other nodes, at once; started answers end. */
  function fail(failed: readonly number[], downMs: () => number): void {
    const lost: Active[] = [];
    for (const node of failed) {
      const untilMs = nowMs + downMs();
      epochs[node]!++;
      isUp[node] = 0;
      nodes.caches[node]!.forEach((block) => holders.remove(block, node));
      nodes.fail(node, untilMs);
      for (const active of actives[node]!) {
        active.isLost = true;
        active.leave.all();
        if (active.hasFirst) counts.numBroken++;
        else lost.push(active);
      }
      actives[node]!.clear();
      queue.add(untilMs, () => {
        isUp[node] = 1;
        gateways.setUp((index) => isUp[index] === 1);
      });
    }
    gateways.setUp((index) => isUp[index] === 1);
    counts.numRetried += lost.length;
    for (const { request, gateway } of lost) {
      chosenNodes[request] = -1;
      dispatch(request, gateway);
    }
  }

  function probe(slice: number): void {
    for (let node = slice; node < numNodes; node += NUM_SLICES) gateways.probe(node, nodes.numRunning[node]!);
    if (nowMs < lastMs) queue.add(nowMs + options.probeMs / NUM_SLICES, () => probe((slice + 1) % NUM_SLICES));
  }

  if (numGateways > 1) queue.add(0, () => probe(0));
  if (storm !== null) {
    const random = createRandom(options.seed + 1);
    queue.add(storm.atMs, () => {
      const failed = Array.from({ length: numNodes }, (_, i) => i).filter(() => random.next() < storm.share);
      fail(failed, () => random.next() * storm.maxDownMs);
    });
  }
  for (let request = 0; request < trace.numRequests; request++) {
    queue.runUntil(trace.atMs[request]!);
    nowMs = trace.atMs[request]!;
    dispatch(request, gateways.gatewayOf(request));
  }
  queue.runAll();
  return { ttftMs, cachedTokens, nodes: chosenNodes, busyMs: nodes.busyMs, ...counts };
}
