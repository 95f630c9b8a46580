import { invalidFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import { type Json, size } from './hf-config.ts';
import { u32 } from './hf-family.ts';
import { copyTensor, negativeExp, weight } from './hf-tensor.ts';

/** The dimensions of Mamba 2 layers in config.json. */
export interface HfMamba2 {
  readonly innerLength: number;
  readonly numHeads: number;
  readonly numGroups: number;
  readonly stateLength: number;
  readonly convWidth: number;
}

/** Reads and checks the dimensions; `innerLength` where config.json has no factor for it. */
export function readMamba2(config: Json, innerLength: number): HfMamba2 {
  const mamba = {
    innerLength,
    numHeads: size(config, 'mamba_n_heads'),
    numGroups: size(config, 'mamba_n_groups'),
    stateLength: size(config, 'mamba_d_state'),
    convWidth: size(config, 'mamba_d_conv'),
  };
  const { numHeads, numGroups } = mamba;
  const headLength = typeof config['mamba_d_head'] === 'number' ? config['mamba_d_head'] : innerLength / numHeads;
  if (headLength * numHeads !== innerLength || innerLength % numGroups !== 0 || numHeads % numGroups !== 0) {
    invalidFile(
      `config.json: ${innerLength} values do not divide into ${numHeads} Mamba heads of ${headLength} and ${numGroups} groups`,
      { ...mamba, headLength },
    );
  }
  return mamba;
}

/** The parts of a Mamba 2 layer; `numMixed` values pass the convolution. */
export function mamba2Tensors(mamba: HfMamba2, width: number) {
  const { innerLength, numHeads, numGroups, stateLength, convWidth } = mamba;
  const numMixed = innerLength + 2 * numGroups * stateLength;
  return {
    input: weight('mamba.in_proj', 'ssm_in', [width, innerLength + numMixed + numHeads]),
    convolution: copyTensor(
      'mamba.conv1d.weight',
      'ssm_conv1d.weight',
      [convWidth, numMixed],
      [numMixed, 1, convWidth],
    ),
    convolutionBias: copyTensor('mamba.conv1d.bias', 'ssm_conv1d.bias', [numMixed]),
    stepBias: copyTensor('mamba.dt_bias', 'ssm_dt.bias', [numHeads]),
    decay: negativeExp(copyTensor('mamba.A_log', 'ssm_a', [1, numHeads], [numHeads])),
    skip: copyTensor('mamba.D', 'ssm_d', [1, numHeads], [numHeads]),
    norm: copyTensor('mamba.norm.weight', 'ssm_norm.weight', [innerLength / numGroups, numGroups], [innerLength]),
    output: weight('mamba.out_proj', 'ssm_out', [innerLength, width]),
  };
}

export const mamba2Entries = ({
  innerLength,
  numHeads,
  numGroups,
  stateLength,
  convWidth,
}: HfMamba2): MetadataEntry[] => [
  u32('ssm.conv_kernel', convWidth),
  u32('ssm.inner_size', innerLength),
  u32('ssm.state_size', stateLength),
  u32('ssm.time_step_rank', numHeads),
  u32('ssm.group_count', numGroups),
];
