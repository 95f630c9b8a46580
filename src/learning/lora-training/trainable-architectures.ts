import { RuvLLMError } from '../../core/errors.ts';
import type { RopeOp } from '../../kernels/contract.ts';
import type { ModelFile } from '../../models/types.ts';
import { readWindow } from '../../models/metadata-keys.ts';

/** How the blocks of a trainable architecture differ from Llama's. */
export interface TrainableArchitecture {
  readonly pairing: RopeOp['pairing'];
  /** Heads of q and k are normalized before they are rotated. */
  readonly hasHeadNorms: boolean;
  readonly window: (file: ModelFile) => number;
}

const whole = (): number => 0;
const ofFile = (file: ModelFile): number => readWindow(file, 0);

const trainable: ReadonlyMap<string, TrainableArchitecture> = new Map([
  ['llama', { pairing: 'adjacent', hasHeadNorms: false, window: ofFile }],
  ['qwen2', { pairing: 'halves', hasHeadNorms: false, window: whole }],
  ['qwen3', { pairing: 'halves', hasHeadNorms: true, window: whole }],
  ['phi3', { pairing: 'halves', hasHeadNorms: false, window: ofFile }],
]);

/** Throws `unsupported` with the trainable architectures. */
export function findTrainable(name: string): TrainableArchitecture {
  const found = trainable.get(name);
  if (found !== undefined) return found;
  const supported = [...trainable.keys()];
  throw new RuvLLMError(
    'unsupported',
    `adapters of architecture "${name.slice(0, 80)}" cannot be trained (only: ${supported.join(', ')})`,
    { data: { architecture: name.slice(0, 80), supported } },
  );
}
