import { invalidFile } from '../../failures.ts';
import { ATTENTION_OUTPUT, GATED, HEAD_NORMS, QKV, RMS } from '../decoder-modules.ts';
import { type Json, layerTypes, numberList, positive, show, size, wholeNumber } from '../hf-config.ts';
import { localRopeBase } from '../hf-decoder-shape.ts';
import { f32, type HfFamily, type HfModel, u32 } from '../hf-family.ts';
import { copyTensor, type HfTensor, weight, weightOrZeros } from '../hf-tensor.ts';
import { normalQuantile } from '../normal-quantile.ts';
import { joinTensors, padWithZeros } from '../value-reader.ts';
import { GELU, GEMMA3_DEFAULTS, GEMMA_NORMS, windowEntry } from './gemma.ts';

const numStreams = (config: Json): number => size(config, 'altup_num_inputs', 4);
const numShared = (config: Json): number => wholeNumber(config, 'num_kv_shared_layers', 15);
const inputLength = (config: Json): number => size(config, 'hidden_size_per_layer_input', 256);

/** The activation sparsity may be one number for all layers, and the feed-forward length a list of equal ones. */
function normalize(config: Json): Json {
  const lengths: unknown = config['intermediate_size'];
  if (!Array.isArray(lengths)) return { ...GEMMA3_DEFAULTS, ...config };
  if (lengths.some((length) => length !== lengths[0]))
    invalidFile(`config.json: intermediate_size must be the same in all layers, got ${show(lengths)}`);
  return { ...GEMMA3_DEFAULTS, ...config, intermediate_size: lengths[0] };
}

/** Matrices of all streams but the active one, one after the other. */
const streamMatrices = (from: string, to: string, width: number, count: number): HfTensor => ({
  to,
  dims: [width, width, count],
  read: (source) => {
    const readers = Array.from({ length: count }, (_, i) => source.values(`${from}.${i}.weight`, [width, width]));
    return joinTensors(readers, width * width);
  },
});

/** Tokens of images and sound are after the others and have no inputs of layers: their rows are 0. */
function layerInputTable({ config, shape }: HfModel): HfTensor {
  const numCols = shape.numLayers * inputLength(config);
  const numRows = size(config, 'vocab_size_per_layer_input', shape.vocabSize);
  if (numRows > shape.vocabSize)
    invalidFile(`config.json: vocab_size_per_layer_input is ${numRows}, vocab_size only ${shape.vocabSize}`);
  const table = weight('model.embed_tokens_per_layer', 'per_layer_token_embd', [numCols, numRows]);
  return {
    ...table,
    dims: [numCols, shape.vocabSize],
    read: (source) => padWithZeros(table.read(source), numRows * numCols),
  };
}

/** The inputs of all layers. */
export function layerInputEnds({ config, shape }: HfModel): HfTensor[] {
  const dim = inputLength(config);
  return [
    layerInputTable({ config, shape }),
    weight('model.per_layer_model_projection', 'per_layer_model_proj', [shape.embeddingLength, shape.numLayers * dim]),
    weight('model.per_layer_projection_norm', 'per_layer_proj_norm', [dim]),
  ];
}

/** The use of a layer's own input. */
export const layerInputTensors = (width: number, dim: number): HfTensor[] => [
  weight('per_layer_input_gate', 'inp_gate', [width, dim]),
  weight('per_layer_projection', 'proj', [dim, width]),
  weight('post_per_layer_input_norm', 'post_norm', [width]),
];

function endTensors({ config, shape }: HfModel): HfTensor[] {
  const [width, others] = [shape.embeddingLength, numStreams(config) - 1];
  return [
    ...layerInputEnds({ config, shape }),
    streamMatrices('model.altup_projections', 'altup_proj.weight', width, others),
    streamMatrices('model.altup_unembed_projections', 'altup_unembd_proj.weight', width, others),
  ];
}

/** Checkpoints may leave out keys and values of layers that use those of others. */
function keyTensors({ config, shape }: HfModel, layer: number): HfTensor[] {
  const isShared = layer >= shape.numLayers - numShared(config);
  return [...QKV, ...HEAD_NORMS].map(([from, to, dims]) =>
    (isShared && !to.startsWith('attn_q') ? weightOrZeros : weight)(from, to, dims(shape)),
  );
}

function layerTensors({ config, shape }: HfModel, layer: number): HfTensor[] {
  const [width, streams] = [shape.embeddingLength, numStreams(config)];
  const rank = size(config, 'laurel_rank', 64);
  return [
    ...keyTensors({ config, shape }, layer),
    ...layerInputTensors(width, inputLength(config)),
    weight('altup.modality_router', 'altup_router', [width, streams]),
    weight('altup.router_norm', 'altup_router_norm', [width]),
    weight('altup.prediction_coefs', 'altup_predict_coef', [streams, streams * streams]),
    weight('altup.correction_coefs', 'altup_correct_coef', [streams, streams]),
    copyTensor('altup.correct_output_scale', 'altup_correct_scale.weight', [width]),
    weight('laurel.linear_left', 'laurel_l', [width, rank]),
    weight('laurel.linear_right', 'laurel_r', [rank, width]),
    weight('laurel.post_laurel_norm', 'laurel_post_norm', [width]),
  ];
}

/** Shares of activations that are 0, as thresholds in standard deviations: -Infinity keeps all. */
function sparsityScales(config: Json, numLayers: number): Float32Array {
  const pattern = config['activation_sparsity_pattern'] ?? 0;
  const shares =
    typeof pattern === 'number'
      ? Array.from({ length: numLayers }, () => pattern)
      : numberList(config, 'activation_sparsity_pattern', numLayers);
  const bad = shares.find((share) => !(share >= 0 && share < 1));
  if (bad !== undefined) invalidFile(`config.json: activation_sparsity_pattern has ${bad}, must be from 0 to below 1`);
  return Float32Array.from(shares, normalQuantile);
}

/** Gemma 3n, text only. */
export const gemma3nFamily: HfFamily = {
  modelTypes: ['gemma3n_text', 'gemma3n'],
  architecture: 'gemma3n',
  normalize,
  modules: [ATTENTION_OUTPUT, ...GATED, ...GEMMA_NORMS],
  layer: layerTensors,
  ends: (ends, model) => [...ends, ...endTensors(model)],
  epsilon: RMS,
  isTied: true,
  settings: { hidden_activation: GELU, attention_bias: [false], altup_correct_scale: [true] },
  entries: ({ config, shape }) => [
    windowEntry(config, 512),
    f32('rope.freq_base_swa', localRopeBase(config)),
    f32('final_logit_softcapping', positive(config, 'final_logit_softcapping', 30)),
    u32('altup.active_idx', wholeNumber(config, 'altup_active_idx', 0)),
    u32('altup.num_inputs', numStreams(config)),
    u32('embedding_length_per_layer_input', inputLength(config)),
    u32('attention.shared_kv_layers', numShared(config)),
    { key: 'activation_sparsity_scale', type: 'array<f32>', value: sparsityScales(config, shape.numLayers) },
    {
      key: 'attention.sliding_window_pattern',
      type: 'array<bool>',
      value: layerTypes(config, shape.numLayers).map((type) => type === 'sliding_attention'),
    },
  ],
};
