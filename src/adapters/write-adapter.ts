import { choiceOption, optional, resolveOptions, stringOption } from '../core/options.ts';
import type { GgufToWrite, TensorToWrite } from '../gguf/index.ts';
import { quantizeRow } from '../quant/index.ts';
import { siteOf } from './target-shapes.ts';
import type { Adapter, LowRankFactors } from './types.ts';

export interface WriteAdapterOptions {
  /** `general.name` of the file. Default `adapter`. */
  name?: string;
  /** Storage of factors. Default `F32`, which is exact; `F16` halves the file. */
  type?: 'F32' | 'F16';
  /** `ruvllm.training` of the file: how it was trained, as JSON. Default: none. */
  training?: string | null;
}

/**
 * The adapter as a GGUF file that llama.cpp can read. The file has one alpha for all factors: if theirs differ, the
 * remainder of a scale goes into B, and the file computes the same under another hash.
 */
export function describeAdapterFile(adapter: Adapter, options?: WriteAdapterOptions): GgufToWrite {
  const { name, type, training } = resolveOptions<Required<WriteAdapterOptions>>('adapter file', options, {
    name: stringOption('adapter'),
    type: choiceOption('F32', ['F32', 'F16']),
    training: optional(stringOption('')),
  });
  const alphas = new Set(adapter.factors.map(({ scale, rank }) => Math.fround(scale * rank)));
  // An alpha of 0 would be read as unscaled.
  const [first] = alphas;
  const alpha = alphas.size === 1 && first !== 0 ? first! : 1;
  return {
    metadata: [
      { key: 'general.architecture', type: 'string', value: adapter.architecture },
      { key: 'general.type', type: 'string', value: 'adapter' },
      { key: 'general.name', type: 'string', value: name },
      { key: 'adapter.type', type: 'string', value: 'lora' },
      { key: 'adapter.lora.alpha', type: 'f32', value: alpha },
      ...(training === null ? [] : [{ key: 'ruvllm.training', type: 'string' as const, value: training }]),
    ],
    tensors: adapter.factors.flatMap((factor) => factorTensors(factor, alpha, type)),
  };
}

function factorTensors(factor: LowRankFactors, alpha: number, type: 'F32' | 'F16'): TensorToWrite[] {
  const { numCols, numRows, rank, scale, a } = factor;
  const remainder = (scale * rank) / alpha;
  const b = Math.fround(scale * rank) === alpha ? factor.b : factor.b.map((value) => value * remainder);
  const name = `${siteOf(factor)}.weight`;
  return [
    { name: `${name}.lora_a`, type, dims: [numCols, rank], data: quantizeRow(type, a) },
    { name: `${name}.lora_b`, type, dims: [rank, numRows], data: quantizeRow(type, b) },
  ];
}
