import { loadModel } from '../node/load-model.ts';
import type { Model } from '../runtime/model.ts';
import type { ModelConfig, ModelProgress } from '../runtime/model-config.ts';
import type { CommandContext } from './command.ts';
import { LOAD_FLAGS } from './load-flags.ts';
import { type FlagValues, withFlagNamesAsync } from './flags.ts';

export const PHASE_LABELS: Readonly<Record<ModelProgress['phase'], string>> = {
  resolve: 'looking up',
  wait: 'waiting for another download',
  check: 'checking',
  download: 'downloading',
  extract: 'unpacking',
  load: 'loading',
};

/** Loads a model with a progress bar. */
export async function loadWithProgress(
  { io, output }: Pick<CommandContext, 'io' | 'output'>,
  reference: string,
  config: ModelConfig,
  values: FlagValues,
): Promise<Model> {
  const progress = output.progress();
  const shortName = reference.split(/[\\/]/).at(-1)!;
  try {
    return await withFlagNamesAsync(LOAD_FLAGS, values, () =>
      loadModel(reference, {
        ...config,
        signal: io.signal,
        onProgress: ({ phase, doneBytes, totalBytes }) =>
          progress.update({ label: `${PHASE_LABELS[phase]} ${shortName}`, doneBytes, totalBytes }),
      }),
    );
  } finally {
    progress.finish();
  }
}
