import type { GenerateChunk, GenerateSummary } from '../generation-types.ts';
import { requireHistory, type SessionName, type SessionTable } from './session-table.ts';

/** A turn of a conversation whose caller sends the whole history; counts when it ends. */
export async function* generateInHistory(
  table: SessionTable,
  name: SessionName,
  start: () => AsyncIterable<GenerateChunk>,
): AsyncGenerator<GenerateChunk, void, undefined> {
  requireHistory(name, table.find(name));
  for await (const chunk of start()) {
    if (chunk.finishReason !== null) table.countTurn(name, lengthOf(chunk));
    yield chunk;
  }
}

/** Tokens of the conversation; the usage has those of discarded attempts, too. */
function lengthOf({ usage, reflection }: GenerateSummary): number {
  if (reflection === undefined) return usage.totalTokens;
  const { promptTokens, completionTokens } = reflection.attempts[reflection.chosen]!;
  return promptTokens + completionTokens;
}
