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

/** The dimensions of a target's matrix in a layer of a model, -1 for the output; throws if the layer has no such matrix. */
export function targetShape(
  target: AdapterTarget,
  base: AdapterBase,
  layer: number,
): { numCols: number; numRows: number } {
  const size = base.layerSizes?.[layer];
  if (target === 'attn_v' && size?.hasNoValues === true) throw withoutValues(layer);
  if (target === 'ffn_gate' && base.isGated === false) {
    throw new RuvLLMError(
      'unsupported',
      `the adapter changes ffn_gate, but the feed-forward layers of this ${base.architecture} model have no gate`,
      { data: { target, architecture: base.architecture } },
    );
  }
  if (base.experts !== undefined && target.startsWith('ffn_')) throw ofExperts(target, base.experts.numExperts);
  if (base.latent !== undefined && target.startsWith('attn_')) throw ofLatent(target, base.latent.rank);
  if (base.hasQueryGates === true && target === 'attn_q') {
    const message = 'adapters of attn_q are not supported where this matrix also has the gates of attention';
    throw new RuvLLMError('unsupported', message, { data: { target } });
  }
  const [numCols, numRows] = SHAPES[target];
  const sized = { ...base, ...size };
  return { numCols: numCols(sized), numRows: numRows(sized) };
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
    if (target.startsWith('attn_') && base.recurrentLayers?.includes(layer) === true)
      throw withoutAttention(target, layer);
    const expected = targetShape(target, base, layer);
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

const withoutAttention = (target: string, layer: number): RuvLLMError =>
  new RuvLLMError('unsupported', `the adapter changes ${target} of layer ${layer}, which has no attention`, {
    data: { target, layer },
  });

const withoutValues = (layer: number): RuvLLMError =>
  new RuvLLMError(
    'unsupported',
    `the adapter changes attn_v of layer ${layer}, which has no such matrix: its values are its keys`,
    { data: { target: 'attn_v', layer } },
  );

/** Every expert would need factors of its own. */
const ofExperts = (target: string, numExperts: number): RuvLLMError =>
  new RuvLLMError(
    'unsupported',
    `adapters of ${target} are not supported in a mixture of ${numExperts} experts; attention and the output are`,
    { data: { target, numExperts } },
  );

/** Other matrices take the place of q, k and v. */
const ofLatent = (target: string, rank: number): RuvLLMError =>
  new RuvLLMError('unsupported', `adapters of ${target} are not supported with latent attention of rank ${rank}`, {
    data: { target, rank },
  });

const unknownTarget = (target: string): RuvLLMError =>
  new RuvLLMError('invalid_option', `unknown adapter target "${target}" (known: ${ADAPTER_TARGETS.join(', ')})`, {
    data: { target },
  });
