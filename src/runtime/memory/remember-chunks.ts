import { RuvLLMError } from '../../core/errors.ts';
import type { GenerateChunk } from '../generation-types.ts';
import type { Prompt } from '../prompt.ts';
import { createCallRecorder, LEFT } from './call-recorder.ts';
import type { RememberedCall, RequestMemory } from './request-memory.ts';

/** A generation that the memory knows of: with what it recalls, and written down when it has ended, however it ends. */
export async function* rememberChunks(
  requests: RequestMemory,
  call: RememberedCall,
  now: () => number,
  generate: (prompt: Prompt) => AsyncGenerator<GenerateChunk, void, undefined>,
): AsyncGenerator<GenerateChunk, void, undefined> {
  const open = await requests.begin(call);
  const recorder = createCallRecorder(open, now);
  try {
    for await (const chunk of generate(open.prompt)) {
      recorder.addText(chunk.text);
      for (const { name, arguments: piece } of chunk.toolCalls) recorder.addText(`${name ?? ''}${piece}`);
      if (chunk.finishReason !== null) {
        recorder.addUsage(chunk.usage);
        recorder.addTimings(chunk.timings);
        recorder.end(null); // whoever has read this may not come back for the rest
      }
      yield chunk;
    }
  } catch (error) {
    recorder.end(error);
    throw error;
  } finally {
    recorder.end(LEFT);
  }
}

/** What a call says that asks for a memory nobody opened. */
export function noMemory(): RuvLLMError {
  return new RuvLLMError('invalid_option', 'option "memory" was given, and there is no memory: it is not opened', {
    data: { option: 'memory' },
  });
}
