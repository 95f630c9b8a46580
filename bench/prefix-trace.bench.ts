// Hit rate of the prefix cache by number of pages, on a published trace of block hashes and on synthetic traffic, some of
// which had no part in choosing the eviction order: ours, its two orders alone, and an eviction that knows the future.
//   npm run bench -- prefix-trace [--shares 10,25,50,75]
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { PageValue } from '../src/kv-cache/leaf-order.ts';
import type { CachedPage } from '../src/kv-cache/radix-node.ts';
import { createBlockTrace, readBlockTrace, type BlockTrace } from './support/block-trace.ts';
import { createCountedPages, type CountedPage } from './support/counted-pages.ts';
import { importBuilt } from './support/dist.ts';
import { printTable } from './support/report.ts';
import { TRAFFIC } from './support/traffic.ts';

const { createPrefixTree } = await importBuilt<typeof import('../src/kv-cache/prefix-tree.ts')>('kv-cache/prefix-tree');
const { valueByForks, valueByRecency } =
  await importBuilt<typeof import('../src/kv-cache/leaf-order.ts')>('kv-cache/leaf-order');
const { createEvictionOrder } =
  await importBuilt<typeof import('../src/kv-cache/eviction-order.ts')>('kv-cache/eviction-order');

const { values } = parseArgs({ options: { shares: { type: 'string', default: '10,25,50,75' } } });
const PAGE_TOKENS = 16;
const SHARES = values.shares.split(',').map(Number);

interface TracePage extends CountedPage {
  nextUse: number;
}

interface Policy {
  readonly value: PageValue;
  observe?(namespace: string, tokens: readonly number[], maxPages: number): void;
}

/** A page is never used before its parent, so the page with the latest next use is always a leaf. */
const POLICIES: Record<string, () => Policy> = {
  ours: () => createEvictionOrder(PAGE_TOKENS),
  lru: () => ({ value: valueByRecency }),
  forks: () => ({ value: valueByForks }),
  offline: () => ({ value: (cached) => -((cached as CachedPage).page as TracePage).nextUse }),
};

/** Cached tokens when every prompt is looked up, computed and kept, with at most `maxPages` pages. */
function replay({ requests }: BlockTrace, maxPages: number, { value, observe }: Policy): number {
  const pool = createCountedPages<TracePage>();
  const tree = createPrefixTree({ pageTokens: PAGE_TOKENS, retain: pool.retain, release: pool.release, value });
  let totalCached = 0;
  for (const { tokens, blockIds, nextUses } of requests) {
    const { pages, partial } = tree.match('', tokens);
    const numCached = pages.length * PAGE_TOKENS + (partial?.numTokens ?? 0);
    totalCached += numCached;
    tree.touch('', tokens, numCached);
    observe?.('', Array.from(tokens), maxPages);
    for (const page of pages) pool.retain(page);
    const missing = blockIds.slice(pages.length);
    const hasRoom = (): boolean => pool.numUsed + missing.length <= maxPages;
    if (!hasRoom()) tree.evict({ retention: 'session', isEnough: hasRoom });
    if (!hasRoom()) throw new Error(`a request of ${blockIds.length} pages does not fit into ${maxPages}`);
    const fresh = missing.map((index) => pool.take({ tier: 'float', index, numRefs: 1, nextUse: 0 }));
    const mine = [...pages, ...fresh];
    const inserted = tree.insert('', tokens, tokens.length, mine, 'ordinary');
    inserted.forEach((page, i) => ((page as TracePage).nextUse = nextUses[i]!));
    for (const page of mine) pool.release(page);
  }
  tree.checkIntegrity();
  return totalCached;
}

const file = '../shared/suites/traces/mooncake-synthetic.jsonl';
const hasTrace = existsSync(file);
if (!hasTrace) console.log(`skipped: no trace at ${file}`);
const traces = [
  ...(hasTrace ? [{ name: 'mooncake', isHeldOut: false, create: () => readBlockTrace(file, PAGE_TOKENS) }] : []),
  ...TRAFFIC.map(({ name, isHeldOut, create }) => ({
    name,
    isHeldOut,
    create: () =>
      createBlockTrace(
        create().map((blockIds) => ({ blockIds, numTokens: blockIds.length * PAGE_TOKENS })),
        PAGE_TOKENS,
      ),
  })),
];

const percent = (value: number): string => (100 * value).toFixed(2);
const result: Record<string, number> = {};
const rows: string[][] = [];
const leads = { chosen: [] as number[], heldOut: [] as number[] };
for (const { name, isHeldOut, create } of traces) {
  const trace = create();
  const rate = (numTokens: number): number => Number((numTokens / trace.numTokens).toFixed(4));
  const ideal = rate(trace.numKnownTokens);
  if (name === 'mooncake') {
    const unlimited = rate(replay(trace, Infinity, POLICIES['ours']!()));
    Object.assign(result, { trace_hit_rate: unlimited, trace_ideal: ideal });
  }
  const longest = Math.max(...trace.requests.map(({ blockIds }) => blockIds.length));
  for (const share of SHARES) {
    const maxPages = Math.max(longest + 1, Math.floor((trace.numBlocks * share) / 100));
    const rates = Object.entries(POLICIES).map(([policy, start]) => [policy, rate(replay(trace, maxPages, start()))] as const); // prettier-ignore
    const { ours, lru } = Object.fromEntries(rates) as { ours: number; lru: number };
    (isHeldOut ? leads.heldOut : leads.chosen).push(ours - lru);
    if (name === 'mooncake') for (const [policy, value] of rates) result[`trace_${policy === 'ours' ? 'hit' : policy}_${share}`] = value; // prettier-ignore
    rows.push([name, `${share} %`, ...rates.map(([, value]) => percent(value)), percent(ours - lru), percent(ideal)]);
  }
}
printTable([['traffic', 'room', ...Object.keys(POLICIES), 'ours - lru', 'no limit'], ...rows]);
for (const [name, gains] of Object.entries({ worst_vs_lru: leads.chosen, worst_vs_lru_held_out: leads.heldOut })) {
  result[name] = Number(Math.min(...gains).toFixed(4));
}
console.log(`lowest lead over LRU: ${percent(result['worst_vs_lru']!)} points, held out ${percent(result['worst_vs_lru_held_out']!)}`); // prettier-ignore
console.log(JSON.stringify({ bench: 'prefix-trace', ...result }));
