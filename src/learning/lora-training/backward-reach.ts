import type { AdapterTarget } from '../../adapters/types.ts';
import type { DecoderShape } from '../../models/types.ts';
import type { ParameterLayout } from './parameter-layout.ts';

/** How far down gradients propagate: below the lowest adapted matrix nothing depends on the parameters. */
export interface BackwardReach {
  /** The first layer whose activations are kept. */
  readonly firstLayer: number;
  /** Whether the input of this matrix depends on parameters, so that gradients pass through it. */
  crosses(target: AdapterTarget, layer: number): boolean;
}

/** Order of the matrices in a layer; equal numbers share an input. */
const STAGES: Readonly<Record<AdapterTarget, number>> = {
  attn_q: 0,
  attn_k: 0,
  attn_v: 0,
  attn_output: 1,
  ffn_gate: 2,
  ffn_up: 2,
  ffn_down: 3,
  output: 0,
};
const STAGES_PER_LAYER = 4;

export function planReach({ numLayers }: DecoderShape, layout: ParameterLayout): BackwardReach {
  const stageOf = (target: AdapterTarget, layer: number): number =>
    (target === 'output' ? numLayers : layer) * STAGES_PER_LAYER + STAGES[target];
  const lowest = Math.min(...layout.matrices.map(({ target, layer }) => stageOf(target, layer)));
  return {
    firstLayer: Math.floor(lowest / STAGES_PER_LAYER),
    crosses: (target, layer) => lowest < stageOf(target, layer),
  };
}
