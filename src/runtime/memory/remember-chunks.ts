import type { ResolvedGenerateOptions } from '../generate-options.ts';
import type { GenerateChunk } from '../generation-types.ts';
import { observeStream } from '../observe-stream.ts';
import type { Prompt } from '../prompt.ts';
import { createCallRecorder } from './call-recorder.ts';
import type { RequestMemory } from './request-memory.ts';
import type { RememberedCall } from './types.ts';

type Generate = (prompt: Prompt) => AsyncGenerator<GenerateChunk, void, undefined>;

/** Generates with recalled context and writes an audit entry, if the model has a memory; otherwise only generates. */
export type RememberCall = (
  prompt: Prompt,
  options: ResolvedGenerateOptions,
  generate: Generate,
  numHistoryTokens?: number,
) => AsyncGenerator<GenerateChunk, void, undefined>;

/**
 * Generates with recalled context, and writes an audit entry when the call ends, with or without an error. `isJson`: whether the answer
 * must be JSON.
 */
export async function* rememberChunks(
  requests: RequestMemory,
  call: RememberedCall,
  now: () => number,
  generate: Generate,
  isJson: boolean,
): AsyncGenerator<GenerateChunk, void, undefined> {
  const open = await requests.begin(call);
  const recorder = createCallRecorder(open, now, isJson);
  const isLast = ({ finishReason }: GenerateChunk): boolean => finishReason !== null;
  const chunks = observeStream(generate(open.prompt), isLast, [{ onEvent: recorder.add, onEnd: recorder.end }]);
  if (open.recall === null) return yield* chunks;
  for await (const chunk of chunks) yield chunk.finishReason === null ? chunk : { ...chunk, memory: open.recall };
}
