import { RuvLLMError } from '../core/errors.ts';
import { ADAPTER_TARGETS, type Adapter, type AdapterBase, type AdapterTarget } from './types.ts';

type Width = (base: AdapterBase) => number;

const embedding: Width = (base) => base.embeddingDim;
const queries: Width = (base) => base.numHeads * base.headDim;
const keys: Width = (base) => base.numKvHeads * base.headDim;
const inner: Width = (base) => base.feedForwardDim;

/** [columns, rows] of each matrix. */
const SHAPES: Readonly<Record<AdapterTarget, readonly [Width, Width]>> = {
  attn_q: [embedding, queries],
  attn_k: [embedding, keys],
  attn_v: [embedding, keys],
  attn_output: [queries, embedding],
  ffn_gate: [embedding, inner],
  ffn_up: [embedding, inner],
  ffn_down: [inner, embedding],
  output: [embedding, (base) => base.vocabSize],
};

/** The dimensions of a target's matrix in a model. */
export function targetShape(target: AdapterTarget, base: AdapterBase): { numCols: number; numRows: number } {
  const [numCols, numRows] = SHAPES[target];
  return { numCols: numCols(base), numRows: numRows(base) };
}

/** The name of a matrix in GGUF and the forward pass. */
export function siteOf({ target, layer }: { target: AdapterTarget; layer: number }): string {
  return target === 'output' ? 'output' : `blk.${layer}.${target}`;
}

/** Throws if an adapter is for another model, and names the first difference. */
export function checkAdapter({ architecture, factors }: Adapter, base: AdapterBase): void {
  if (architecture !== base.architecture) {
    throw new RuvLLMError(
      'invalid_option',
      `the adapter is for ${architecture}, but the model is ${base.architecture}`,
      { data: { adapterArchitecture: architecture, modelArchitecture: base.architecture } },
    );
  }
  for (const factor of factors) {
    const { target, layer, numCols, numRows } = factor;
    if (!ADAPTER_TARGETS.includes(target)) throw unknownTarget(target);
    const isLayer = target === 'output' ? layer === -1 : Number.isInteger(layer) && layer >= 0;
    if (!isLayer || layer >= base.numLayers) {
      throw new RuvLLMError(
        'invalid_option',
        `the adapter changes layer ${layer} (${target}), the model has ${base.numLayers} layers`,
        { data: { target, layer, numLayers: base.numLayers } },
      );
    }
    const expected = targetShape(target, base);
    if (numCols === expected.numCols && numRows === expected.numRows) continue;
    throw new RuvLLMError(
      'invalid_option',
      `the adapter changes ${siteOf(factor)} as a matrix of ${numRows} x ${numCols}, ` +
        `the model has ${expected.numRows} x ${expected.numCols}`,
      {
        data: {
          tensor: siteOf(factor),
          shape: `${numRows} x ${numCols}`,
          expected: `${expected.numRows} x ${expected.numCols}`,
        },
      },
    );
  }
}

const unknownTarget = (target: string): RuvLLMError =>
  new RuvLLMError('invalid_option', `unknown adapter target "${target}" (known: ${ADAPTER_TARGETS.join(', ')})`, {
    data: { target },
  });
