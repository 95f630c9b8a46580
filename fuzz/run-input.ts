import { RuvLLMError } from '../src/core/errors.ts';
import type { FuzzTarget } from './target.ts';

/** Far above what any input may take, on a machine that is busy with others. */
const LIMIT_MS = 10_000;

/** Null: read, or refused as bad input. Otherwise why it is a bug. */
export async function findBug(target: FuzzTarget, bytes: Uint8Array): Promise<string | null> {
  const began = performance.now();
  try {
    await target.run(bytes);
  } catch (error) {
    const isRefused = error instanceof RuvLLMError && error.code !== 'internal';
    if (!isRefused) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  const ms = performance.now() - began;
  return ms > LIMIT_MS ? `took ${Math.round(ms)} ms` : null;
}
