import type { LowRankFactors } from '../../adapters/types.ts';
import { microFactors } from '../micro-lora/token-rows.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import type { LearningModel } from './types.ts';

/** Learned tokens at a time; each has a row of its own. */
const MICRO_RANK = 32;

/** Config of the micro adapter of a model. */
export function microConfig({ hiddenDim, vocabSize }: Pick<LearningModel, 'hiddenDim' | 'vocabSize'>) {
  return { hiddenDim, vocabSize, rank: MICRO_RANK, alpha: MICRO_RANK };
}

export function microFactorsOf(model: LearningModel, state: MicroLoraState | null): readonly LowRankFactors[] {
  return state === null ? [] : microFactors(microConfig(model), state.parameters);
}

/** Whether a stored state is one of this config: older versions stored others. */
export const isMicroState = (model: LearningModel, { parameters }: MicroLoraState): boolean =>
  parameters.length === MICRO_RANK * (model.hiddenDim + model.vocabSize);
