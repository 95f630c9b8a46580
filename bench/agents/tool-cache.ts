import type { JsonValue } from '../../src/memory/types.ts';
import { importBuilt } from '../support/dist.ts';
import { createRandom } from '../support/recall/random.ts';
import { printTable } from '../support/report.ts';
import { openEmbedder, withMemory } from './support/memory.ts';
import { DEVELOPMENT_CALLS, HELD_OUT_CALLS, type Intent } from './support/tool-calls.ts';

const { argumentText } = await importBuilt<typeof import('../../src/memory/tool-cache/same-arguments.ts')>('memory/tool-cache/same-arguments'); // prettier-ignore

const NUM_CALLS = 1200;
const MIN_COSINE = 0.85;
const MINUTE_MS = 60_000;
const TOOL_AGES_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];

interface Call {
  readonly intent: Intent;
  readonly args: JsonValue;
  readonly maxAgeMs: number;
  readonly atMs: number;
}

/** Calls of agents in random order: some intents are frequent, and each is worded in several ways. */
function makeCalls(intents: readonly Intent[], seed: number): readonly Call[] {
  const random = createRandom(seed);
  let atMs = Date.UTC(2026, 0, 1);
  return Array.from({ length: NUM_CALLS }, () => {
    atMs += random(20_000);
    // The product of two uniform numbers: the first intents are asked most.
    const intent = intents[Math.floor((random(1000) / 1000) * (random(1000) / 1000) * intents.length)]!;
    return { intent, args: intent.wordings[random(intent.wordings.length)]!, maxAgeMs: TOOL_AGES_MS[random(TOOL_AGES_MS.length)]!, atMs }; // prettier-ignore
  });
}

interface Counts {
  numSaved: number;
  numFalse: number;
  numStale: number;
}

/** Saved calls, false hits and stale answers; every result says what it answers and when. */
export async function measure({ isDevelopment = false } = {}): Promise<Record<string, number>> {
  const intents = isDevelopment ? DEVELOPMENT_CALLS : HELD_OUT_CALLS;
  const calls = makeCalls(intents, isDevelopment ? 7 : 8);
  const embedder = await openEmbedder();
  const idOf = (intent: Intent): number => intents.indexOf(intent);
  const cached: Counts = { numSaved: 0, numFalse: 0, numStale: 0 };
  const byMeaning: Counts = { numSaved: 0, numFalse: 0, numStale: 0 };
  let numExact = 0;
  try {
    await withMemory(embedder, async (memory, clock) => {
      const stored: { tool: string; vector: Float32Array; intent: number; atMs: number }[] = [];
      for (const { intent, args, maxAgeMs, atMs } of calls) {
        clock.timeMs = atMs;
        const tool = { name: intent.tool, isReadOnly: true };
        const { result, from } = await memory.toolCache.call(tool, args, { maxAgeMs, tenant: 'bench' }, async () => ({ intent: idOf(intent), atMs })); // prettier-ignore
        if (from !== 'run') cached.numSaved++;
        if (from === 'exact') numExact++;
        if (result.intent !== idOf(intent)) cached.numFalse++;
        if (atMs - result.atMs > maxAgeMs) cached.numStale++;
        // The same cache with meaning alone.
        const vector = await embedder.embed(argumentText(args));
        const near = stored
          .filter((one) => one.tool === intent.tool && atMs - one.atMs <= maxAgeMs)
          .map((one) => ({ ...one, cosine: one.vector.reduce((sum, value, i) => sum + value * vector[i]!, 0) }))
          .sort((a, b) => b.cosine - a.cosine)[0];
        if (near !== undefined && near.cosine >= MIN_COSINE) {
          byMeaning.numSaved++;
          if (near.intent !== idOf(intent)) byMeaning.numFalse++;
        } else stored.push({ tool: intent.tool, vector, intent: idOf(intent), atMs });
      }
    });
  } finally {
    await embedder.close?.();
  }
  const rate = (part: number, whole: number): number => Number((whole === 0 ? 0 : part / whole).toFixed(4));
  const row = (name: string, { numSaved, numFalse, numStale }: Counts): string[] => [name, String(numSaved), String(numFalse), String(numStale)]; // prettier-ignore
  printTable([
    ['tool cache', 'calls saved', 'false hits', 'stale'],
    row('this one', cached),
    row('meaning alone', byMeaning),
  ]);
  return {
    tool_calls: NUM_CALLS,
    tool_calls_saved: rate(cached.numSaved, NUM_CALLS),
    tool_calls_saved_exact: rate(numExact, NUM_CALLS),
    tool_false_hit_rate: rate(cached.numFalse, cached.numSaved),
    tool_false_hit_rate_meaning_alone: rate(byMeaning.numFalse, byMeaning.numSaved),
    tool_stale_answers: cached.numStale,
  };
}
