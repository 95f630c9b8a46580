import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { KernelPackFactory } from '../../kernels/contract.ts';
import type { PlacedWeight } from '../../models/weight-store.ts';
import { quantFormats } from '../../quant/index.ts';

/** The quantizations that publishers offer, from the best to the smallest, by the type of most of their weights. */
const CANDIDATES: readonly { readonly name: string; readonly type: TensorTypeName }[] = [
  { name: 'Q8_0', type: 'Q8_0' },
  { name: 'Q6_K', type: 'Q6_K' },
  { name: 'Q4_K_M', type: 'Q4_K' },
  { name: 'Q4_0', type: 'Q4_0' },
];

/** A quantization of a model and the memory that it would take once loaded. */
export interface FittingQuant {
  readonly name: string;
  readonly totalBytes: number;
}

/**
 * The best quantization whose weights, in the layout of this machine's kernels, fit into `availableBytes` next to
 * `otherBytes`; null: none does. Matrices that the format cannot hold are counted as they are.
 */
export function findFittingQuant(
  weights: readonly PlacedWeight[],
  factory: KernelPackFactory,
  otherBytes: number,
  availableBytes: number,
): FittingQuant | null {
  for (const { name, type } of CANDIDATES) {
    let totalBytes = otherBytes;
    for (const weight of weights) {
      const isStorable = weight.type !== null && weight.numCols % quantFormats[type].blockSize === 0;
      totalBytes += isStorable ? factory.matrixBytes(type, weight.numRows, weight.numCols) : weight.sizeBytes;
    }
    if (totalBytes <= availableBytes) return { name, totalBytes };
  }
  return null;
}
