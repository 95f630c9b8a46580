import type { GenerateChunk } from '../generation-types.ts';
import { observeStream } from '../observe-stream.ts';
import type { Prompt } from '../prompt.ts';
import { createCallRecorder } from './call-recorder.ts';
import type { RequestMemory } from './request-memory.ts';
import type { RememberedCall } from './types.ts';

/** Generates with recalled context, and writes the call to the memory when it ends, however it ends. */
export async function* rememberChunks(
  requests: RequestMemory,
  call: RememberedCall,
  now: () => number,
  generate: (prompt: Prompt) => AsyncGenerator<GenerateChunk, void, undefined>,
): AsyncGenerator<GenerateChunk, void, undefined> {
  const open = await requests.begin(call);
  const recorder = createCallRecorder(open, now);
  const isLast = ({ finishReason }: GenerateChunk): boolean => finishReason !== null;
  yield* observeStream(generate(open.prompt), isLast, [{ onEvent: recorder.add, onEnd: recorder.end }]);
}
