// Which blocks of our code have run, by V8's precise coverage.
import { Session } from 'node:inspector/promises';

interface FunctionCoverage {
  readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
}
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly FunctionCoverage[];
}

export interface Coverage {
  /** Blocks that ran since the last call. With `hasCounts`, a block that ran twice as often is another one: a loop that runs longer. */
  take(hasCounts: boolean): Promise<string[]>;
  stop(): void;
}

/** `isOurs` selects the scripts by their address. */
export async function startCoverage(isOurs: (url: string) => boolean): Promise<Coverage> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    async take(hasCounts) {
      const { result } = (await session.post('Profiler.takePreciseCoverage')) as { result: ScriptCoverage[] };
      const blocks: string[] = [];
      for (const { url, functions } of result) {
        if (!isOurs(url)) continue;
        for (const { startOffset, endOffset, count } of functions.flatMap(({ ranges }) => ranges)) {
          if (count === 0) continue;
          const times = hasCounts ? Math.min(10, Math.floor(Math.log2(count))) : '';
          blocks.push(`${url}:${startOffset}-${endOffset}:${times}`);
        }
      }
      return blocks;
    },
    stop: () => session.disconnect(),
  };
}

/** Adds the blocks; returns how many were new. */
export function addBlocks(seen: Set<string>, blocks: readonly string[]): number {
  const before = seen.size;
  for (const block of blocks) seen.add(block);
  return seen.size - before;
}
