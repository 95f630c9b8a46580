import { RuvLLMError } from '../core/errors.ts';
import type { Architecture } from './architecture.ts';
import { createParallelDecoder } from './create-parallel-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import { readFactor } from './metadata-keys.ts';
import { readRope } from './rope.ts';
import type { ModelFile } from './types.ts';

/** Command R and Aya: parallel gated blocks after one layer norm without bias, and scaled logits. */
export const commandR: Architecture = {
  name: 'command-r',
  isCausal: true,
  open(file) {
    refuseHeadNorms(file);
    const attention: AttentionRule = { rope: 0, scale: 1 / Math.sqrt(file.shape.headDim), window: 0, softcap: 0 };
    return createParallelDecoder(file, {
      ropes: [readRope(file, 'adjacent')],
      attentionOf: () => attention,
      norm: 'layer',
      feedForward: 'silu',
      logitScale: readFactor(file, 'logit_scale'),
    });
  },
};

/** Command R+ has a layer norm with other weights for every head. */
function refuseHeadNorms({ gguf }: ModelFile): void {
  const name = 'blk.0.attn_q_norm.weight';
  const tensor = gguf.tensors.get(name);
  if (tensor === undefined) return;
  throw new RuvLLMError(
    'unsupported',
    `command-r: norms of single heads (Command R+) are not supported (tensor ${name}, ${tensor.dims.join(' x ')})`,
    { data: { tensor: name, shape: tensor.dims.join(' x ') } },
  );
}
