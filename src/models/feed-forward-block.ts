import { activateGate, addAdjusted, addProjected } from './decoder-blocks.ts';
import type { BlockInput } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readFeedForward } from './decoder-weights.ts';
import { addExperts, type ExpertRules, readExperts } from './experts.ts';
import type { DecoderShape } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

interface FeedForwardOptions {
  /** The choice of experts; ignored in files without them. */
  readonly experts: ExpertRules;
  /** Factor of the block's result; default 1. */
  readonly residualScale?: number;
}

/** residual += the result of a block for its input. */
export type FeedForwardBlock = (step: DecoderStep, input: BlockInput) => void;

/** The feed-forward block of a layer, gated by silu: dense, or a mixture after the leading dense layers. */
export function readFeedForwardBlock(
  loader: WeightLoader,
  layer: number,
  shape: DecoderShape,
  { experts: rules, residualScale = 1 }: FeedForwardOptions,
): FeedForwardBlock {
  if (shape.experts !== undefined && layer >= shape.experts.numDenseLayers) {
    const experts = readExperts(loader, layer, shape);
    return (step, input) => addExperts(step, input, experts, { ...rules, activation: 'silu', residualScale });
  }
  const weights = readFeedForward(loader, layer, shape);
  return (step, input) => {
    activateGate(step, input, weights, 'silu');
    if (residualScale === 1) addProjected(step, step.buffers.gate, weights.down);
    else addAdjusted(step, step.buffers.gate, weights.down, null, residualScale);
  };
}
