import type { Estimator } from '../../../../../src/learning/router/estimator.ts';
import type { RouteInput } from '../../../../../src/learning/router/types.ts';
import { segmentsOf } from '../bench-input.ts';
import { createInference } from './inference.ts';
import { DEFAULT_SHAPE, layoutOf } from './layout.ts';
import { sigmoid, softmax } from './loss.ts';
import type { Mask } from './sparsity.ts';
import { rawConfidence } from './train.ts';

export interface FastGrnnState {
  readonly params: Float32Array;
  readonly mask: Mask;
  readonly numCandidates: number;
}

/** Whether candidates are judged by the quality head (outcomes of models) or the choice head (one of many is right). */
export type Judge = 'quality' | 'choice';

/** A trained network as an estimator. It learns in batches with `trainFastGrnn`, not from single outcomes. */
export function createFastGrnn(state: FastGrnnState, judge: Judge = 'quality'): Estimator {
  const { params, mask, numCandidates } = state;
  const layout = layoutOf({ ...DEFAULT_SHAPE, numCandidates });
  const infer = createInference(layout, params, mask);
  return {
    name: 'FastGRNN',
    estimate(input: RouteInput) {
      const segments = segmentsOf(input);
      const outputs = infer(segments);
      const qualities =
        judge === 'quality'
          ? Float64Array.from({ length: numCandidates }, (_, i) => sigmoid(outputs[layout.qualityAt + i]!))
          : softmax(outputs, 0, numCandidates);
      const detail = `${segments.length} segments`;
      return { qualities, confidence: rawConfidence(layout, outputs), why: { kind: 'best', detail } };
    },
    update() {},
    save: () => ({
      kind: 'FastGRNN',
      numbers: { numCandidates, isChoice: +(judge === 'choice') },
      arrays: { params, wz: mask.wz, wh: mask.wh },
    }),
  };
}
