import { ATTENTION, RMS, upDims, downDims, width } from '../decoder-modules.ts';
import { type Json, numberList, positive, size } from '../hf-config.ts';
import { checkSettings } from '../hf-decoder-shape.ts';
import type { HfFamily, HfModel } from '../hf-family.ts';
import { mamba2Entries, mamba2Tensors, readMamba2 } from '../hf-mamba2.ts';
import { changeValues, copyTensor, type FloatHfTensor, type HfTensor, scaled, weight } from '../hf-tensor.ts';

/** The factors of the model, which files have in their weights. */
function readFactors(config: Json) {
  const factor = (name: string): number => positive(config, name, 1);
  const list = (name: string, length: number): readonly number[] =>
    config[name] === undefined || config[name] === null
      ? Array.from({ length }, () => 1)
      : numberList(config, name, length);
  const [gate, down] = list('mlp_multipliers', 2) as [number, number];
  return {
    embedding: factor('embedding_multiplier'),
    output: factor('lm_head_multiplier'),
    attentionInput: factor('attention_in_multiplier'),
    attentionOutput: factor('attention_out_multiplier'),
    key: factor('key_multiplier'),
    mambaInput: factor('ssm_in_multiplier'),
    mambaOutput: factor('ssm_out_multiplier'),
    /** Of z, x, b, c and the steps. */
    mambaParts: list('ssm_multipliers', 5),
    gate,
    down,
  };
}

const readMamba = (config: Json) =>
  readMamba2(
    config,
    size(config, 'mamba_d_ssm', Math.floor(positive(config, 'mamba_expand', 2) * size(config, 'hidden_size'))),
  );

function mambaTensors({ config, shape }: HfModel): HfTensor[] {
  const mamba = readMamba(config);
  const hasNorm = config['mamba_rms_norm'] === true;
  if (hasNorm) checkSettings({ mamba_norm_before_gate: true, ...config }, { mamba_norm_before_gate: [false] });
  const { innerLength, numGroups, stateLength } = mamba;
  const { input, convolution, convolutionBias, stepBias, decay, skip, norm, output } = mamba2Tensors(
    mamba,
    shape.embeddingLength,
  );
  const factors = readFactors(config);
  const ends = [innerLength, innerLength, numGroups * stateLength, numGroups * stateLength];
  const partOf = (row: number): number => {
    let part = 0;
    for (let end = ends[0]!; part < ends.length && row >= end; end += ends[part] ?? 0) part++;
    return part;
  };
  const scaledInput = changeValues(
    input,
    (value, position) =>
      value * factors.mambaInput * factors.mambaParts[partOf(Math.floor(position / shape.embeddingLength))]!,
  );
  return [
    scaledInput,
    convolution,
    ...(config['mamba_conv_bias'] === false ? [] : [convolutionBias]),
    stepBias,
    decay,
    skip,
    ...(hasNorm ? [norm] : []),
    scaled(output, factors.mambaOutput),
  ];
}

function layerTensors(model: HfModel): HfTensor[] {
  const { config, shape } = model;
  const factors = readFactors(config);
  const attention: Record<string, number> = {
    attn_q: factors.attentionInput,
    attn_k: factors.attentionInput * factors.key,
    attn_v: factors.attentionInput,
    attn_output: factors.attentionOutput,
  };
  return [
    ...ATTENTION.map(([from, to, dims]) => scaled(weight(from, to, dims(shape)), attention[to]!)),
    ...mambaTensors(model),
    // The name has no suffix in files of this family.
    copyTensor('pre_ff_layernorm.weight', 'ffn_norm', [shape.embeddingLength]),
    scaled(weight('feed_forward.gate_proj', 'ffn_gate', upDims(shape)), factors.gate),
    weight('feed_forward.up_proj', 'ffn_up', upDims(shape)),
    scaled(weight('feed_forward.down_proj', 'ffn_down', downDims(shape)), factors.down),
  ];
}

/** Embedding and output have factors of their own, so a tied output becomes a tensor if they differ. */
function endTensors(ends: readonly FloatHfTensor[], { config, shape }: HfModel): HfTensor[] {
  const { embedding, output } = readFactors(config);
  const vocabulary = [shape.embeddingLength, shape.vocabSize];
  const isTied = !ends.some(({ to }) => to === 'output.weight');
  return [
    ...ends.map((tensor) => {
      const factor = tensor.to === 'token_embd.weight' ? embedding : tensor.to === 'output.weight' ? output : 1;
      return scaled(tensor, factor);
    }),
    ...(isTied && embedding !== output ? [scaled(weight('model.embed_tokens', 'output', vocabulary), output)] : []),
  ];
}

/** Falcon H1: attention and Mamba 2 side by side in every layer. */
export const falconH1Family: HfFamily = {
  modelTypes: ['falcon_h1'],
  architecture: 'falcon-h1',
  modules: [['input_layernorm', 'attn_norm', width]],
  layer: layerTensors,
  ends: endTensors,
  outputNorm: 'model.final_layernorm',
  epsilon: RMS,
  settings: {
    hidden_act: ['silu'],
    attention_bias: [false],
    mlp_bias: [false],
    projectors_bias: [false],
    mamba_proj_bias: [false],
  },
  entries: ({ config }) => mamba2Entries(readMamba(config)),
  preTokenizer: 'falcon-h1',
};
