import type { CommandContext } from './command.ts';
import { PHASE_LABELS } from './load-model.ts';
import { openHub } from './open-hub.ts';

/** The path of a model, downloaded if necessary. */
export async function fetchModel({ io, output }: CommandContext, reference: string): Promise<string> {
  const progress = output.progress();
  try {
    return await openHub().resolveModelPath(reference, {
      download: true,
      signal: io.signal,
      onProgress: ({ phase, doneBytes, totalBytes }) =>
        progress.update({ label: `${PHASE_LABELS[phase]} ${reference}`, doneBytes, totalBytes }),
    });
  } finally {
    progress.finish();
  }
}
