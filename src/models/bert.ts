import { RuvLLMError } from '../core/errors.ts';
import type { Offset } from '../kernels/contract.ts';
import type { Architecture } from './architecture.ts';
import type { ModelFile } from './types.ts';
import { addProjected, pickHidden } from './decoder-blocks.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readAttention } from './decoder-weights.ts';
import { readLayerNormEpsilon } from './metadata-keys.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** BERT and sentence encoders based on it: learned positions, norms after the blocks, hidden states and no logits. */
export const bert: Architecture = {
  name: 'bert',
  isCausal: false,
  open(file) {
    const config = readConfig(file);
    return {
      ropes: [],
      bind(loader) {
        const weights = readWeights(loader, config);
        return (step) => forward(step, config, weights);
      },
    };
  },
};

interface LayerNorm {
  readonly weight: Offset;
  readonly bias: Offset;
}

function readConfig(file: ModelFile) {
  const { gguf, shape, maxContextTokens } = file;
  if (maxContextTokens > shape.contextLength) {
    throw new RuvLLMError(
      'invalid_option',
      `a context of ${maxContextTokens} tokens exceeds the model's ${shape.contextLength} positions`,
      { data: { maxContextTokens, contextLength: shape.contextLength } },
    );
  }
  return {
    shape,
    epsilon: readLayerNormEpsilon(file),
    scale: 1 / Math.sqrt(shape.headDim),
    // Only type 0 is used; the table determines how many exist.
    numTokenTypes: gguf.tensor('token_types.weight').dims[1] ?? 1,
  };
}

type Config = ReturnType<typeof readConfig>;

function readWeights(loader: WeightLoader, { shape, numTokenTypes }: Config) {
  const { embeddingDim: dim, feedForwardDim, vocabSize, contextLength, numLayers } = shape;
  const norm = (name: string): LayerNorm => ({
    weight: loader.vector(`${name}.weight`, dim),
    bias: loader.vector(`${name}.bias`, dim),
  });
  return {
    tokens: loader.matrix('token_embd.weight', vocabSize, dim),
    positions: loader.matrix('position_embd.weight', contextLength, dim),
    tokenTypes: loader.matrix('token_types.weight', numTokenTypes, dim),
    norm: norm('token_embd_norm'),
    layers: Array.from({ length: numLayers }, (_, layer) => ({
      attention: readAttention(loader, layer, shape),
      attentionNorm: norm(`blk.${layer}.attn_output_norm`),
      up: loader.projection(`blk.${layer}.ffn_up`, feedForwardDim, dim),
      down: loader.projection(`blk.${layer}.ffn_down`, dim, feedForwardDim),
      outputNorm: norm(`blk.${layer}.layer_output_norm`),
    })),
  };
}

type Weights = ReturnType<typeof readWeights>;

function forward(step: DecoderStep, config: Config, weights: Weights): void {
  embed(step, weights);
  normalize(step, weights.norm, config.epsilon);
  for (const [index, layer] of weights.layers.entries()) {
    attendToAll(step, index, layer.attention, config.scale);
    addProjected(step, step.buffers.attended, layer.attention.output);
    normalize(step, layer.attentionNorm, config.epsilon);
    activate(step, layer.up);
    addProjected(step, step.buffers.gate, layer.down);
    normalize(step, layer.outputNorm, config.epsilon);
  }
  if (step.numHiddenRows > 0) pickHidden(step);
}

/** residual = token + token type + position. */
function embed({ pack, buffers, shape, numTokens: numRows }: DecoderStep, weights: Weights): void {
  const { ids, tokenTypes, positions, residual, hidden } = buffers;
  pack.gatherRows({ table: weights.tokens, ids, out: residual, numRows, scale: 1 });
  for (const [table, rows] of [
    [weights.tokenTypes, tokenTypes],
    [weights.positions, positions],
  ] as const) {
    pack.gatherRows({ table, ids: rows, out: hidden, numRows, scale: 1 });
    pack.add({ x: residual, y: hidden, out: residual, count: numRows * shape.embeddingDim });
  }
}

/** residual = norm(residual). */
function normalize({ pack, buffers, shape, numTokens: numRows }: DecoderStep, norm: LayerNorm, epsilon: number): void {
  const { residual } = buffers;
  pack.layerNorm({ x: residual, ...norm, out: residual, numRows, dim: shape.embeddingDim, epsilon });
}

/** attended = attention over residual, from every token to its whole sequence. */
function attendToAll(step: DecoderStep, layer: number, weights: ReturnType<typeof readAttention>, scale: number): void {
  const { pack, buffers, numTokens, numSequences } = step;
  const place = step.kvLayers[layer]!;
  const { q, k, v, slots, sequences, pageTables } = buffers;
  pack.matmul({
    x: buffers.residual,
    numTokens,
    outputs: [
      { ...weights.q, out: q, accumulate: false },
      { ...weights.k, out: k, accumulate: false },
      { ...weights.v, out: v, accumulate: false },
    ],
  });
  pack.writeKv({ ...place, k, v, slots, numTokens });
  const where = { ...place, q, out: buffers.attended, sequences, numSequences, pageTables };
  pack.attention({ ...where, numHeads: step.shape.numHeads, scale, window: 0, softcap: 0, seesAll: true });
}

/** gate = gelu(up · residual). */
function activate({ pack, buffers, shape, numTokens }: DecoderStep, up: Projection): void {
  const { residual, gate } = buffers;
  pack.matmul({ x: residual, numTokens, outputs: [{ ...up, out: gate, accumulate: false }] });
  pack.gelu({ x: gate, count: numTokens * shape.feedForwardDim, formula: 'erf' });
}
