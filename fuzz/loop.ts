import { createRandom } from '../src/core/random.ts';
import { addBlocks, startCoverage } from './coverage.ts';
import { mutate } from './mutate.ts';
import { findBug } from './run-input.ts';
import type { FuzzTarget } from './target.ts';

/** Inputs between two looks at the coverage: looking takes longer than most inputs. */
const BATCH = 32;

export interface FuzzResult {
  readonly numInputs: number;
  readonly numBlocks: number;
  readonly bugs: readonly { readonly bytes: Uint8Array; readonly reason: string }[];
  /** Inputs that reached new code, in the order of their discovery. */
  readonly found: readonly Uint8Array[];
}

const MAX_BUGS = 5;

const isOurs = (url: string): boolean => url.includes('/src/') && !url.includes('/fuzz/');

/** Mutates inputs for a while, and keeps those that reach code no other has reached. */
export async function fuzz(
  target: FuzzTarget,
  corpus: readonly Uint8Array[],
  options: { readonly seconds: number; readonly seed: number },
): Promise<FuzzResult> {
  const random = createRandom(options.seed);
  const pool: Uint8Array[] = [...(await target.seeds()), ...corpus];
  const found: Uint8Array[] = [];
  const bugs: { bytes: Uint8Array; reason: string }[] = [];
  const coverage = await startCoverage(isOurs);
  const [blocks, counted] = [new Set<string>(), new Set<string>()];
  let numInputs = 0;
  const tryOne = async (bytes: Uint8Array): Promise<void> => {
    numInputs++;
    const reason = await findBug(target, bytes);
    if (reason !== null && !bugs.some((bug) => firstLines(bug.reason) === firstLines(reason))) bugs.push({ bytes, reason }); // prettier-ignore
  };
  try {
    for (const bytes of pool) {
      await tryOne(bytes);
      addBlocks(counted, await coverage.take(true));
    }
    const end = performance.now() + options.seconds * 1000;
    const pick = (): Uint8Array => pool[Math.floor(random.next() * pool.length)] ?? new Uint8Array(0);
    while (performance.now() < end && bugs.length < MAX_BUGS) {
      const batch = Array.from({ length: BATCH }, () => mutate(random, pick(), pick(), target.words));
      for (const bytes of batch) await tryOne(bytes);
      if (addBlocks(blocks, await coverage.take(false)) === 0) continue;
      // One of them reached new code: each runs again, alone.
      for (const bytes of batch) {
        await findBug(target, bytes);
        if (addBlocks(counted, await coverage.take(true)) === 0) continue;
        pool.push(bytes);
        found.push(bytes);
      }
    }
    return { numInputs, numBlocks: blocks.size, bugs, found };
  } finally {
    coverage.stop();
  }
}

const firstLines = (text: string): string => text.split('\n').slice(0, 3).join('\n');

/** The fewest inputs, in order, that together reach what all of them reach. */
export async function minimize(target: FuzzTarget, inputs: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const coverage = await startCoverage(isOurs);
  const seen = new Set<string>();
  const kept: Uint8Array[] = [];
  try {
    for (const bytes of inputs.toSorted((a, b) => a.length - b.length)) {
      await findBug(target, bytes);
      if (addBlocks(seen, await coverage.take(true)) > 0) kept.push(bytes);
    }
    return kept;
  } finally {
    coverage.stop();
  }
}
