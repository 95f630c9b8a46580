import type { GenerateChunk } from '../generation-types.ts';
import { requireHistory, type SessionName, type SessionTable } from './session-table.ts';

/** A turn of a conversation whose caller sends the whole history; counts when it ends. */
export async function* generateInHistory(
  table: SessionTable,
  name: SessionName,
  start: () => AsyncIterable<GenerateChunk>,
): AsyncGenerator<GenerateChunk, void, undefined> {
  requireHistory(name, table.find(name));
  for await (const chunk of start()) {
    if (chunk.finishReason !== null) table.countTurn(name, chunk.usage.totalTokens);
    yield chunk;
  }
}
