import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile } from '../gguf/index.ts';
import { MAX_EXPERTS } from '../kernels/contract.ts';
import { readCount } from './read-count.ts';
import type { ExpertShape } from './types.ts';

const MAX_DIM = 2 ** 20;
const EXPERT_TENSOR = /^blk\.\d+\.ffn_(gate|up|gate_up|down)_exps\.weight$|_chexps\.|ffn_gate_inp\./;

/** The dimensions of a mixture of experts; null: the file has none. */
export function readExpertShape(gguf: GgufFile, numLayers: number): ExpertShape | null {
  const { metadata } = gguf;
  const architecture = metadata.string('general.architecture');
  const key = (name: string): string => `${architecture}.${name}`;
  const tensor = [...gguf.tensors.keys()].find((name) => EXPERT_TENSOR.test(name));
  if (metadata.number(key('expert_count'), 0) === 0) {
    if (tensor === undefined) return null;
    throw new RuvLLMError(
      'invalid_model_file',
      `tensor ${tensor} belongs to experts, but metadata key "${key('expert_count')}" is missing or 0`,
      { data: { tensor, key: key('expert_count') } },
    );
  }
  const count = (name: string, max: number, defaultValue?: number): number =>
    readCount(metadata, key(name), max, defaultValue);
  const numExperts = count('expert_count', MAX_EXPERTS);
  // Mixtral has no key for the rows of an expert. Every tensor is checked against the result.
  const gate = [...gguf.tensors.values()].find(({ name }) => name.endsWith('.ffn_gate_exps.weight'));
  const hasShared = [...gguf.tensors.keys()].some((name) => name.endsWith('.ffn_gate_shexp.weight'));
  const defaultDim = gate?.dims[1] ?? count('feed_forward_length', MAX_DIM);
  const feedForwardDim = count('expert_feed_forward_length', MAX_DIM, defaultDim);
  return {
    numExperts,
    numUsed: count('expert_used_count', numExperts),
    feedForwardDim,
    sharedFeedForwardDim: hasShared ? readSharedDim(gguf, key, feedForwardDim) : denseDimBeside(gguf),
    numDenseLayers: readDenseLayers(metadata.number(key('leading_dense_block_count'), 0), numLayers, key),
  };
}

/** Gemma 4 has a dense layer beside the experts of a layer; 0: the file has none. */
function denseDimBeside({ tensors }: GgufFile): number {
  const layer = [...tensors.keys()].find((name) => name.endsWith('.ffn_gate_inp.weight'))?.split('.ffn_')[0];
  return tensors.get(`${layer}.ffn_gate.weight`)?.dims[1] ?? 0;
}

/** Qwen has a key for the size, DeepSeek a number of shared experts of the usual size. */
function readSharedDim({ metadata }: GgufFile, key: (name: string) => string, expertDim: number): number {
  const sharedKey = key('expert_shared_feed_forward_length');
  if (metadata.get(sharedKey) !== undefined) return readCount(metadata, sharedKey, MAX_DIM);
  return expertDim * readCount(metadata, key('expert_shared_count'), MAX_EXPERTS, 1);
}

function readDenseLayers(value: number, numLayers: number, key: (name: string) => string): number {
  if (Number.isInteger(value) && value >= 0 && value < numLayers) return value;
  throw new RuvLLMError(
    'invalid_model_file',
    `metadata key "${key('leading_dense_block_count')}" is ${value}, must be from 0 to ${numLayers - 1}`,
    { data: { value, numLayers } },
  );
}
