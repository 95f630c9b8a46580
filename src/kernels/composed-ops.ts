import type { GatedMatmulOp, InputNorm, KernelPack, MatmulOp, Offset, RotateAndStoreOp } from './contract.ts';

/** The parts of the fused operations. */
export type Primitives = Pick<KernelPack, 'rmsNorm' | 'rope' | 'writeKv' | 'gatedActivation'> & {
  /** Expects normalized rows. */
  multiply(op: Omit<MatmulOp, 'norm'>): void;
};

/** Defines the fused operations as sequences of primitives; packs that gain nothing from fusing use this. */
export function composeOps(primitives: Primitives): Pick<KernelPack, 'matmul' | 'gatedMatmul' | 'rotateAndStore'> {
  const normalized = (x: Offset, norm: InputNorm | null, numRows: number, dim: number): Offset => {
    if (norm === null) return x;
    primitives.rmsNorm({ x, weight: norm.weight, out: norm.scratch, numRows, dim, epsilon: norm.epsilon });
    return norm.scratch;
  };
  return {
    matmul({ x, norm = null, numTokens, outputs }) {
      const dim = outputs[0]!.weight.numCols;
      primitives.multiply({ x: normalized(x, norm, numTokens, dim), numTokens, outputs });
    },
    gatedMatmul({ x, norm = null, numTokens, gate, up, out, scratch, activation }: GatedMatmulOp) {
      primitives.multiply({
        x: normalized(x, norm, numTokens, gate.weight.numCols),
        numTokens,
        outputs: [
          { ...gate, out, accumulate: false },
          { ...up, out: scratch, accumulate: false },
        ],
      });
      const count = numTokens * gate.weight.numRows;
      primitives.gatedActivation({ gate: out, up: scratch, out, count, activation });
    },
    rotateAndStore(op: RotateAndStoreOp) {
      const { numTokens, headDim, epsilon, kv, qNorm, kNorm } = op;
      const heads = [
        { x: op.q, numHeads: op.numHeads, norm: qNorm },
        { x: op.k, numHeads: kv.numKvHeads, norm: kNorm },
      ];
      for (const { x, numHeads, norm } of heads) {
        if (norm !== null) {
          primitives.rmsNorm({ x, weight: norm, out: x, numRows: numTokens * numHeads, dim: headDim, epsilon });
        }
        const { cosSin, rotaryDim, pairing } = op;
        primitives.rope({ x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing });
      }
      primitives.writeKv({ kv, layer: op.layer, k: op.k, v: op.v, slots: op.slots, numTokens });
    },
  };
}
