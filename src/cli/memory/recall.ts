import { describePlace } from '../../memory/documents/describe-place.ts';
import type { Memory } from '../../memory/memory.ts';
import type { MemoryWish } from '../../runtime/memory/memory-wish.ts';
import type { RecallReport } from '../../runtime/memory/types.ts';
import type { CommandContext } from '../command.ts';
import type { FlagValues } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { readInteger } from '../values.ts';
import { describeFallback, findEmbedder } from './find-embedder.ts';
import { explainLock } from './explain-lock.ts';
import { memoryPlace } from './memory-place.ts';
import { kindName } from './show.ts';

const NAME = '--recall';
const MAX_TEXTS = 50;

/** The option `memory` of a request; null without --recall and --remember. */
export function readRecall(values: FlagValues): MemoryWish | null {
  const text = values[NAME] as string | undefined;
  const remember = values['--remember'] === true ? { remember: true } : null;
  if (text === undefined) return remember;
  const k = readInteger(text, NAME);
  if (k < 1 || k > MAX_TEXTS) throw usageError(`${NAME} must be from 1 to ${MAX_TEXTS}, got ${k}`, NAME);
  return { k, ...remember };
}

/** Opens the memory of --memory with its embedder. */
export async function openRecallMemory(context: CommandContext, chatModelPath: () => Promise<string>): Promise<Memory> {
  const place = memoryPlace(context) as string | undefined;
  const report = (message: string): void => context.output.note(message);
  const { options, fallbackReason } = await findEmbedder(context, chatModelPath);
  if (fallbackReason !== null) report(describeFallback(fallbackReason));
  const { openNodeMemory } = await import('../../node/memory/open-memory.ts');
  return openNodeMemory({ ...(place === undefined ? {} : { place }), ...options, report }).catch((error: unknown) => {
    throw explainLock(error);
  });
}

/** The sources of an answer, one per line. */
export function describeRecall({ outcome, sources, numLeftOut }: RecallReport): string {
  if (outcome === 'nothing_found') return 'no text of the memory matches';
  if (outcome === 'nothing_fitted') return `nothing fitted: ${numLeftOut} texts, each longer than the budget or the context`; // prettier-ignore
  return sources
    .map(({ number, id, kind, position }) => {
      const place = position === null ? `${kindName(kind)} ${id}` : `${position.name}, ${describePlace(position)}`;
      return `source [${number}]: ${place}`;
    })
    .join('\n');
}
