// Gateway policies in a simulation: the gateway's own choice of a node against others that know less, and one that knows all.
//   npm run bench -- fleet-sim [--nodes 200] [--sessions 20000] [--gateways 2] [--parts policies,published,sweeps,storms] [--seed 1]
//   npm run bench -- fleet-sim --nodes 10000 --sessions 1000000 --gateways 32 --parts policies --policies affine,random,oracle
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { MAX_TEXTS, placesOf } from '../src/gateway/text-index.ts';
import { TOKENS_PER_REQUEST } from '../src/gateway/choose-node.ts';
import { printTable } from './support/report.ts';
import { eventBytes } from './support/fleet-sim/event-size.ts';
import { readPublishedTrace } from './support/fleet-sim/published-trace.ts';
import { readFigures, type SimFigures } from './support/fleet-sim/sim-figures.ts';
import { POLICIES, type SimOptions } from './support/fleet-sim/sim-options.ts';
import { simulate, type SimResult } from './support/fleet-sim/simulate.ts';
import { createSessionTrace, type SimTrace } from './support/fleet-sim/trace.ts';

const PARTS = ['policies', 'published', 'sweeps', 'storms'] as const;
const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '200' },
    sessions: { type: 'string', default: '20000' },
    gateways: { type: 'string', default: '2' },
    parts: { type: 'string', default: PARTS.join(',') },
    policies: { type: 'string', default: POLICIES.join(',') },
    seed: { type: 'string', default: '1' },
  },
});
const count = (name: 'nodes' | 'sessions' | 'gateways' | 'seed'): number => {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`error: --${name} must be a whole number above 0`);
  process.exit(2);
};
function listOf<T extends string>(name: 'parts' | 'policies', known: readonly T[]): readonly T[] {
  const list = values[name].split(',');
  const unknown = list.filter((one) => !(known as readonly string[]).includes(one));
  if (unknown.length === 0) return list as T[];
  console.error(`error: --${name} must be of ${known.join(', ')}; unknown: ${unknown.join(', ')}`);
  process.exit(2);
}
const parts = listOf('parts', PARTS);
const policies = listOf('policies', POLICIES);
const [numNodes, numSessions, numGateways, seed] = [
  count('nodes'),
  count('sessions'),
  count('gateways'),
  count('seed'),
];

/** A node with one mid-size accelerator: 10,000 prompt tokens/s, 50 output tokens/s per request, a cache of 524,288 tokens. */
const SERVICE = { fixedMs: 20, tokenMs: 0.1, attentionMs: 0, decodeMs: 20, delayTokens: 64 };
const CACHE_BLOCKS = 1024;
const REQUESTS_PER_NODE_SECOND = 1.6;
/** Every block of a text, as gateways remembered them before. */
const allPlaces = (numBlocks: number): readonly number[] => Array.from({ length: numBlocks }, (_, i) => i);
/** More than any part here fills: other settings are compared without this limit. */
const ENOUGH_TEXTS = 16 * MAX_TEXTS;

const BASE: SimOptions = {
  policy: 'affine',
  numNodes,
  numGateways,
  cacheBlocks: CACHE_BLOCKS,
  service: SERVICE,
  tokensPerRequest: TOKENS_PER_REQUEST,
  eventDelayMs: 50,
  probeMs: 1000,
  maxTexts: MAX_TEXTS,
  placesOf,
  isSticky: true,
  storm: null,
  isExhaustive: false,
  seed,
};

const HEADS = ['hit share', 'p50 ms', 'p99 ms', 'max/mean work'];
const cells = ({ hitShare, p50Ms, p99Ms, imbalance }: SimFigures): string[] => [
  hitShare.toFixed(3),
  p50Ms.toFixed(0),
  p99Ms.toFixed(0),
  imbalance.toFixed(2),
];
const figures: Record<string, number | string> = {};

/** Figures without the first third, in which the caches fill. */
function measure(trace: SimTrace, options: Partial<SimOptions>): { figures: SimFigures; result: SimResult } {
  const result = simulate(trace, { ...BASE, ...options });
  return { figures: readFigures(trace, result, trace.atMs[Math.floor(trace.numRequests / 3)]), result };
}

function comparePolicies(name: string, trace: SimTrace, options: Partial<SimOptions>): void {
  const seconds = trace.atMs.at(-1)! / 1000;
  console.log(
    `\n${name}: ${trace.numRequests} requests in ${seconds.toFixed(0)} s, ${options.numNodes ?? numNodes} nodes`,
  );
  const rows: string[][] = [];
  for (const policy of policies) {
    const startMs = performance.now();
    const { figures: of, result } = measure(trace, { ...options, policy });
    const bytes = eventBytes(result.numBatches, result.numChanges, trace.blockTokens);
    rows.push([policy, ...cells(of), (result.numBatches / seconds).toFixed(0), (bytes / seconds / 1000).toFixed(0), ((performance.now() - startMs) / 1000).toFixed(1)]); // prettier-ignore
    const key = `${name}_${policy}`.replaceAll(' ', '_');
    figures[`${key}_hit`] = round(of.hitShare);
    figures[`${key}_p50_ms`] = round(of.p50Ms);
    figures[`${key}_p99_ms`] = round(of.p99Ms);
    if (policy === 'affine') {
      figures[`${key}_events_per_s`] = round(result.numBatches / seconds);
      figures[`${key}_event_bytes_per_s`] = Math.round(bytes / seconds);
    }
  }
  printTable([['policy', ...HEADS, 'batches/s', 'kB/s to a gateway', 'run s'], ...rows]);
}

const round = (value: number): number => Number(value.toPrecision(4));

function sweep<T>(
  title: string,
  trace: SimTrace,
  settings: readonly T[],
  optionsOf: (setting: T) => Partial<SimOptions>,
  nameOf = String as (setting: T) => string,
): SimFigures[] {
  // prettier-ignore
  const all = settings.map((setting) => measure(trace, optionsOf(setting)).figures);
  console.log('');
  printTable([[title, ...HEADS], ...all.map((of, i) => [nameOf(settings[i]!), ...cells(of)])]);
  return all;
}

function sweeps(trace: SimTrace): void {
  const unlimited = { maxTexts: ENOUGH_TEXTS };
  const weights = [0, 32, 64, 128, 256, 512, 1024, 4096];
  for (const delayTokens of [0, 64, 256]) {
    const of = sweep(`weight of a request; true delay ${delayTokens} tokens`, trace, weights, (tokensPerRequest) => ({ ...unlimited, tokensPerRequest, service: { ...SERVICE, delayTokens } })); // prettier-ignore
    const best = of.reduce((at, { p99Ms }, i) => (p99Ms < of[at]!.p99Ms ? i : at), 0);
    figures[`best_weight_p99_delay_${delayTokens}`] = weights[best]!;
    figures[`p99_of_128_by_best_delay_${delayTokens}`] = round(of[weights.indexOf(128)]!.p99Ms / of[best]!.p99Ms);
  }
  sweep('events are late by, ms', trace, [0, 50, 500, 2000, 10_000, 60_000], (eventDelayMs) => ({ ...unlimited, eventDelayMs })); // prettier-ignore
  sweep('load is asked every, ms', trace, [100, 1000, 10_000], (probeMs) => ({ ...unlimited, probeMs }));
  const texts = [MAX_TEXTS / 4, MAX_TEXTS, 4 * MAX_TEXTS, 16 * MAX_TEXTS];
  const dense = sweep('texts of a gateway, all places', trace, texts, (maxTexts) => ({
    maxTexts,
    placesOf: allPlaces,
  }));
  const sparse = sweep('texts of a gateway, some places', trace, texts, (maxTexts) => ({ maxTexts }));
  figures['hit_with_all_places'] = round(dense[1]!.hitShare);
  figures['hit_with_some_places'] = round(sparse[1]!.hitShare);
  figures['hit_without_limit'] = round(dense[3]!.hitShare);
  sweep('load is asked by 8 gateways every, ms', trace, [100, 1000, 10_000], (probeMs) => ({ ...unlimited, numGateways: 8, probeMs })); // prettier-ignore
  const ways = [1, 2, 8].flatMap((gateways) => [true, false].map((isSticky) => ({ numGateways: gateways, isSticky })));
  sweep('gateways', trace, ways, (way) => ({ ...unlimited, ...way }), ({ numGateways: n, isSticky }) => `${n}, ${isSticky ? 'sessions stay' : 'any for each request'}`); // prettier-ignore
}

/** The minute before, the minute of the event, and the next one. */
function showMinutes(name: string, trace: SimTrace, result: SimResult, atMs: number): void {
  const minutes = [-1, 0, 1].map((minute) => readFigures(trace, result, atMs + 60_000 * minute, atMs + 60_000 * (minute + 1))); // prettier-ignore
  console.log(`\n${name}: ${result.numRetried} requests moved, ${result.numBroken} answers broken`);
  printTable([['minute', ...HEADS, 'failed'], ...minutes.map((of, i) => [String(i - 1), ...cells(of), String(of.numFailed)])]); // prettier-ignore
  const key = name.replace(/\W+/g, '_');
  figures[`${key}_p99_ratio`] = round(minutes[1]!.p99Ms / minutes[0]!.p99Ms);
  figures[`${key}_failed`] = minutes.reduce((sum, { numFailed }) => sum + numFailed, 0);
}

function storms(trace: SimTrace, atMs: number, hot: SimTrace): void {
  const enough = { maxTexts: ENOUGH_TEXTS };
  for (const share of [0.01, 0.1, 0.3]) {
    const storm = { atMs, share, maxDownMs: 60_000 };
    showMinutes(`storm of ${100 * share} %`, trace, simulate(trace, { ...BASE, ...enough, storm }), atMs);
  }
  for (const policy of ['affine', 'least loaded'] as const) {
    showMinutes(`hot prefix, ${policy}`, hot, simulate(hot, { ...BASE, ...enough, policy }), atMs);
  }
}

const requestsPerSecond = numNodes * REQUESTS_PER_NODE_SECOND;
const synthetic = createSessionTrace({ numSessions, requestsPerSecond, seed });
const middleMs = synthetic.atMs.at(-1)! / 2;
console.log(`${numNodes} nodes, ${numSessions} sessions, ${numGateways} gateways, seed ${seed}`);
if (parts.includes('policies')) comparePolicies('sessions', synthetic, {});
if (parts.includes('published')) {
  const file = '../shared/suites/traces/mooncake-synthetic.jsonl';
  if (!existsSync(file)) console.log(`skipped: no trace at ${file}`);
  else comparePolicies('published', readPublishedTrace(file, 1), { numNodes: 16, numGateways: 1, cacheBlocks: 2048 });
}
if (parts.includes('sweeps')) sweeps(synthetic);
if (parts.includes('storms')) {
  storms(synthetic, middleMs, createSessionTrace({ numSessions, requestsPerSecond, seed, hotPrefix: { atMs: middleMs, share: 0.3 } })); // prettier-ignore
}
console.log(JSON.stringify({ bench: 'fleet-sim', nodes: numNodes, sessions: numSessions, gateways: numGateways, seed, ...figures })); // prettier-ignore
