import type { LowRankFactors } from '../../adapters/types.ts';
import { microFactors } from '../micro-lora/micro-lora.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import type { LearningModel } from './types.ts';

/** Config of the micro adapter of a model. */
export function microConfig({ hiddenDim, vocabSize }: LearningModel) {
  return { hiddenDim, vocabSize, rank: 2, alpha: 16 };
}

export function microFactorsOf(model: LearningModel, state: MicroLoraState | null): readonly LowRankFactors[] {
  return state === null ? [] : microFactors(microConfig(model), state.parameters);
}
