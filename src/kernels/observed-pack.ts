import type { InputNorm, KernelPack, KernelPackFactory, Offset, WeightMatrix } from './contract.ts';
import { checkExperts } from './experts-op.ts';
import { chooseExperts } from './reference/experts.ts';

/** The input of one or several matrices, before it is multiplied. */
export interface ObservedInput {
  /** Matrices that multiply it; parts of one tensor have the same name. */
  readonly weights: readonly WeightMatrix[];
  /** f32[numRows × numCols]; a view, valid during the call. */
  readonly rows: Float32Array;
  readonly numCols: number;
  /** Of a stack of experts: the number of matrices, and which one multiplies these rows. */
  readonly numMatrices: number;
  readonly matrix: number;
}

/**
 * Packs that show the inputs of every product to `onInput`. The operations recorded so far run first, so a step is slower. The inputs of
 * the experts' second matrices are not shown: packs keep them in their own layout.
 */
export function observeInputs(factory: KernelPackFactory, onInput: (input: ObservedInput) => void): KernelPackFactory {
  return { ...factory, create: async (options) => observePack(await factory.create(options), onInput) };
}

function observePack(pack: KernelPack, onInput: (input: ObservedInput) => void): KernelPack {
  const { arena } = pack;
  const show = (x: Offset, norm: InputNorm | null, numTokens: number, weights: readonly WeightMatrix[]): void => {
    const { numCols } = weights[0]!;
    if (numTokens === 0) return;
    if (norm !== null) {
      const { weight, scratch: out, epsilon } = norm;
      pack.rmsNorm({ x, weight, out, numRows: numTokens, dim: numCols, epsilon });
    }
    pack.finish?.();
    const rows = arena.f32(norm?.scratch ?? x, numTokens * numCols);
    onInput({ weights, rows, numCols, numMatrices: 1, matrix: 0 });
  };
  const normalized = (x: Offset, norm: InputNorm | null): { x: Offset; norm: null } => ({
    x: norm?.scratch ?? x,
    norm: null,
  });
  return {
    ...pack,
    matmul(op) {
      const norm = op.norm ?? null;
      show(op.x, norm, op.numTokens, op.outputs.map(({ weight }) => weight)); // prettier-ignore
      pack.matmul({ ...op, ...normalized(op.x, norm) });
    },
    gatedMatmul(op) {
      const norm = op.norm ?? null;
      show(op.x, norm, op.numTokens, [op.gate.weight, op.up.weight]);
      pack.gatedMatmul({ ...op, ...normalized(op.x, norm) });
    },
    experts(op) {
      const { numExperts, dim } = checkExperts(op);
      pack.finish?.();
      const bias = op.routing.choiceBias === null ? null : arena.f32(op.routing.choiceBias, numExperts);
      for (let token = 0; token < op.numTokens; token++) {
        const rows = arena.f32(op.x + token * dim * 4, dim);
        const logits = arena.f32(op.logits + token * numExperts * 4, numExperts);
        for (const { expert } of chooseExperts(logits, op.routing, bias)) {
          const weights = [op.gate.weight, op.up.weight];
          onInput({ weights, rows, numCols: dim, numMatrices: numExperts, matrix: expert });
        }
      }
      pack.experts(op);
    },
  };
}
