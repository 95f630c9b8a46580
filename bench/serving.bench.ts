// Many concurrent streams, and many conversations in little memory.
//   npm run bench -- serving [--streams 32] [--sessions 1000]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadModel, type Model } from 'ruvllm';
import { benchModel } from './support/bench-model.ts';
import { createTokenSource } from './support/first-token.ts';
import { median, percentile, printTable } from './support/report.ts';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '32' },
    sessions: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
  },
});
const numStreams = Number(values.streams);
const numSessions = Number(values.sessions);
const numRounds = Number(values.rounds);
const file = benchModel('15m', 'Q8_0');
const PROMPT_TOKENS = 64;
const ANSWER_TOKENS = 128;

/** Total tokens/s of all streams, and the inter-token latencies of each. */
async function runStreams(model: Model, count: number, fresh: (count: number) => number[]) {
  const gaps: number[] = [];
  let numTokens = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: count }, async () => {
      let last: number | null = null;
      const options = { temperature: 0, maxTokens: ANSWER_TOKENS, ignoreEos: true };
      for await (const { tokenIds } of model.generateStream(fresh(PROMPT_TOKENS), options)) {
        if (tokenIds.length === 0) continue;
        const now = performance.now();
        if (last !== null) gaps.push(now - last);
        last = now;
        numTokens += tokenIds.length;
      }
    }),
  );
  return { tokensPerSecond: (numTokens * 1000) / (performance.now() - start), gaps };
}

async function measureStreams() {
  const model = await loadModel(file.path, {
    maxContext: 256,
    kvCacheTokens: 256 * numStreams * 2,
    maxSequences: numStreams,
  });
  const fresh = createTokenSource(model.modelInfo().vocabSize);
  await runStreams(model, 1, fresh);
  const one: number[] = [];
  const many: number[] = [];
  const gaps = { one: [] as number[], many: [] as number[] };
  for (let round = 0; round < numRounds; round++) {
    const alone = await runStreams(model, 1, fresh);
    const together = await runStreams(model, numStreams, fresh);
    one.push(alone.tokensPerSecond);
    many.push(together.tokensPerSecond);
    gaps.one.push(...alone.gaps);
    gaps.many.push(...together.gaps);
  }
  await model.dispose();
  const sorted = { one: gaps.one.toSorted((a, b) => a - b), many: gaps.many.toSorted((a, b) => a - b) };
  return {
    one: { tokensPerSecond: median(one), p50: percentile(sorted.one, 0.5), p99: percentile(sorted.one, 0.99) },
    many: { tokensPerSecond: median(many), p50: percentile(sorted.many, 0.5), p99: percentile(sorted.many, 0.99) },
  };
}

/**
 * Conversations of two turns, all started before any continues, with a budget for a tenth of them; compared with
 * computing without cache.
 */
async function measureSessions() {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-sessions-'));
  const turnTokens = 48;
  const answer = { temperature: 0, maxTokens: 16, ignoreEos: true };
  const tokensPerSession = Math.ceil((turnTokens + answer.maxTokens) / 16) * 16;
  const model = await loadModel(file.path, {
    maxContext: 256,
    kvCacheTokens: Math.max(512, Math.round(numSessions / 10) * tokensPerSession),
    maxSequences: 8,
    kvPacking: 'off',
    maxWaiting: numSessions,
    kvSpill: { folder, limitBytes: 4 * 2 ** 30, masterKey: new Uint8Array(32).fill(7) },
  });
  try {
    const fresh = createTokenSource(model.modelInfo().vocabSize, 5_000);
    const turns = Array.from({ length: numSessions }, () => [fresh(turnTokens), fresh(8)] as const);
    const start = performance.now();
    await Promise.all(turns.map(([first], id) => model.session(`${id}`).generate(first, answer)));
    const begun = await model.stats();
    const resumed = await Promise.all(turns.map(([, second], id) => model.session(`${id}`).generate(second, answer)));
    const seconds = (performance.now() - start) / 1000;
    let numRight = 0;
    for (const [id, { tokenIds }] of resumed.entries()) {
      const history = model.session(`${id}`).tokenIds.slice(0, -answer.maxTokens);
      const anew = await model.generate([...history], { ...answer, cachePrefix: false });
      if (anew.tokenIds.join() === tokenIds.join()) numRight++;
    }
    const { cache } = await model.stats();
    const cachedTokens = resumed.reduce((sum, { usage }) => sum + usage.cachedTokens, 0);
    const promptTokens = resumed.reduce((sum, { usage }) => sum + usage.promptTokens, 0);
    return { numRight, seconds, cachedShare: cachedTokens / promptTokens, begun: begun.cache, cache };
  } finally {
    await model.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

const { one, many } = await measureStreams();
const ratio = many.tokensPerSecond / one.tokensPerSecond;
console.log(`${file.name}, prompts of ${PROMPT_TOKENS}, answers of ${ANSWER_TOKENS}, ${numRounds} rounds`);
printTable([
  ['streams', 'tokens/s', 'p50 inter-token latency, ms', 'p99'],
  ['1', one.tokensPerSecond.toFixed(0), one.p50.toFixed(1), one.p99.toFixed(1)],
  [`${numStreams}`, many.tokensPerSecond.toFixed(0), many.p50.toFixed(1), many.p99.toFixed(1)],
]);
const sessions = await measureSessions();
const { cache } = sessions;
console.log(
  `\n${numSessions} conversations in ${(cache.budgetBytes / 2 ** 20).toFixed(0)} MiB (peak ${(cache.peakBytes / 2 ** 20).toFixed(0)}), ` +
    `${sessions.seconds.toFixed(1)} s for two turns: ${sessions.numRight} equal the result without cache, ` +
    `${(100 * sessions.cachedShare).toFixed(0)} % of the second prompts were cached, ${cache.numRestored} pages were restored from disk`,
);
console.log(
  JSON.stringify({
    bench: 'serving',
    model: file.name,
    streams: numStreams,
    streams_ratio: ratio,
    p99_ms: many.p99,
    p99_one_ms: one.p99,
    sessions: numSessions,
    sessions_right: sessions.numRight,
    sessions_cached_share: sessions.cachedShare,
    sessions_budget_bytes: cache.budgetBytes,
    sessions_peak_bytes: cache.peakBytes,
    sessions_restored_pages: cache.numRestored,
  }),
);
