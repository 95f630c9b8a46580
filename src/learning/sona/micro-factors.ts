import type { LowRankFactors } from '../../adapters/types.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import type { LearningModel } from './types.ts';

/** The shape of what single answers teach a model. */
export function microConfig({ architecture, hiddenDim, vocabSize }: LearningModel) {
  return { architecture, hiddenDim, vocabSize, rank: 2, alpha: 16 };
}

/** As `createMicroLora` lays them out: A, then B. */
export function microFactorsOf(model: LearningModel, state: MicroLoraState | null): readonly LowRankFactors[] {
  if (state === null) return [];
  const { hiddenDim, vocabSize, rank, alpha } = microConfig(model);
  const a = state.parameters.slice(0, rank * hiddenDim);
  const b = state.parameters.slice(rank * hiddenDim);
  return [{ target: 'output', layer: -1, numCols: hiddenDim, numRows: vocabSize, rank, scale: alpha / rank, a, b }];
}
