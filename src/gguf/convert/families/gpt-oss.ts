import { invalidFile, unsupportedFile } from '../../failures.ts';
import { ATTENTION, RMS, width } from '../decoder-modules.ts';
import { layerTypes } from '../hf-config.ts';
import { expertEntries, readExperts } from '../hf-experts.ts';
import type { HfFamily, HfModel } from '../hf-family.ts';
import { copyTensor, type HfTensor } from '../hf-tensor.ts';
import { readMxfp4 } from '../mxfp4-blocks.ts';
import { pickColumns, pickRows, transposeMatrices } from '../value-reader.ts';
import { windowEntry } from './gemma.ts';

const EXPERT_KEYS = { count: 'num_local_experts', used: 'num_experts_per_tok', ffnLength: 'intermediate_size' };

interface Stack {
  readonly count: number;
  readonly numRows: number;
  readonly numCols: number;
}

/**
 * A stack of matrices, in MXFP4 or as floats. Floats are transposed in the checkpoint. `stride` is 2 where rows of two stacks alternate, and
 * `offset` chooses one.
 */
function stackTensor(from: string, to: string, stack: Stack, stride: number, offset: number): HfTensor {
  const { count, numRows, numCols } = stack;
  const sourceRows = stride * numRows;
  const sourceOf = (row: number): number => row * stride + offset;
  return {
    to,
    dims: [numCols, numRows, count],
    read(source) {
      if (!source.has(from)) {
        if (numCols % 32 !== 0)
          invalidFile(`${source.fullName(from)}: rows of ${numCols} values are not whole MXFP4 blocks of 32`, {
            numCols,
          });
        return readMxfp4(source, { from, ...stack, sourceRows, sourceOf });
      }
      const matrices = source.values(from, [count, numCols, sourceRows]);
      const columns = pickColumns(matrices, { numCols: sourceRows, count: numRows, sourceOf });
      return transposeMatrices(columns, { count, numRows: numCols, numCols: numRows });
    },
  };
}

function expertTensors({ config, shape }: HfModel): HfTensor[] {
  const { count, ffnLength } = readExperts(config, EXPERT_KEYS);
  const dim = shape.embeddingLength;
  const inner = { count, numRows: ffnLength, numCols: dim };
  const both = 'mlp.experts.gate_up_proj';
  const biasHalf = (to: string, offset: number): HfTensor => ({
    to,
    dims: [ffnLength, count],
    read: (source) => pickRows(source.values(`${both}_bias`, [count, 2 * ffnLength]), 1, (row) => 2 * row + offset),
  });
  return [
    stackTensor(both, 'ffn_gate_exps.weight', inner, 2, 0),
    stackTensor(both, 'ffn_up_exps.weight', inner, 2, 1),
    stackTensor('mlp.experts.down_proj', 'ffn_down_exps.weight', { count, numRows: dim, numCols: ffnLength }, 1, 0),
    biasHalf('ffn_gate_exps.bias', 0),
    biasHalf('ffn_up_exps.bias', 1),
    copyTensor('mlp.experts.down_proj_bias', 'ffn_down_exps.bias', [dim, count]),
    copyTensor('mlp.router.weight', 'ffn_gate_inp.weight', [dim, count]),
    copyTensor('mlp.router.bias', 'ffn_gate_inp.bias', [count]),
  ];
}

/** Files have no list of layers: every second one sees the whole context. */
function checkLayers({ config, shape }: HfModel): void {
  if (config['layer_types'] === undefined || config['layer_types'] === null) return;
  const other = layerTypes(config, shape.numLayers).findIndex(
    (type, layer) => (type === 'sliding_attention') !== (layer % 2 === 0),
  );
  if (other !== -1)
    unsupportedFile(`config.json: layer ${other} breaks the rule that every second layer has no window`);
}

/** gpt-oss: experts in MXFP4, and sinks of attention. */
export const gptOssFamily: HfFamily = {
  modelTypes: ['gpt_oss'],
  architecture: 'gpt-oss',
  modules: [
    ...ATTENTION,
    ['input_layernorm', 'attn_norm', width],
    ['post_attention_layernorm', 'post_attention_norm', width],
  ],
  biased: ['attn_q', 'attn_k', 'attn_v', 'attn_output'],
  layer: (model) => [
    copyTensor('self_attn.sinks', 'attn_sinks.weight', [model.shape.numHeads]),
    ...expertTensors(model),
  ],
  epsilon: RMS,
  settings: { hidden_act: ['silu'], attention_bias: [true], swiglu_limit: [7] },
  quantization: ['mxfp4'],
  entries: (model) => {
    checkLayers(model);
    return [windowEntry(model.config, 128), ...expertEntries(readExperts(model.config, EXPERT_KEYS))];
  },
  preTokenizer: 'gpt-4o',
};
