import type { Model } from '../runtime/model.ts';
import type { ModelConfig, ModelProgress } from '../runtime/model-config.ts';
import type { CommandContext } from './command.ts';
import { openHub } from './open-hub.ts';
import { LOAD_FLAGS } from './load-flags.ts';
import { type FlagValues, withFlagNamesAsync } from './flags.ts';

const PHASE_LABELS: Readonly<Record<ModelProgress['phase'], string>> = {
  resolve: 'looking up',
  wait: 'waiting for another download',
  check: 'checking',
  download: 'downloading',
  extract: 'unpacking',
  load: 'loading',
};

export type OnProgress = (step: ModelProgress & { readonly item?: string }) => void;

/** Runs `work` with a progress bar about `name`, or about the files that it names itself. */
export async function withProgress<T>(
  { output }: Pick<CommandContext, 'output'>,
  name: string | null,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const progress = output.progress();
  try {
    return await work(({ phase, item, doneBytes, totalBytes }) =>
      progress.update({ label: `${PHASE_LABELS[phase]} ${name ?? item!}`, doneBytes, totalBytes }),
    );
  } finally {
    progress.finish();
  }
}

/** The path of a model, downloaded if necessary. */
export function fetchModel(context: Pick<CommandContext, 'io' | 'output'>, reference: string): Promise<string> {
  const { signal } = context.io;
  return withProgress(context, reference, (onProgress) =>
    openHub().resolveModelPath(reference, { download: true, signal, onProgress }),
  );
}

export async function loadWithProgress(
  context: Pick<CommandContext, 'io' | 'output'>,
  reference: string,
  config: ModelConfig,
  values: FlagValues,
): Promise<Model> {
  const { signal } = context.io;
  const { loadModel } = await import('../node/load-model.ts');
  return await withProgress(context, reference.split(/[\\/]/).at(-1)!, (onProgress) =>
    withFlagNamesAsync(LOAD_FLAGS, values, () => loadModel(reference, { ...config, signal, onProgress })),
  );
}
