import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/** Files have no key for this. */
const GROUP_SIZE = 4;

/** SmolLM 3: Llama's blocks; every fourth layer has no positions. */
export const smollm3: Architecture = {
  name: 'smollm3',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'adjacent', isUnrotated: (layer) => (layer + 1) % GROUP_SIZE === 0 }),
};
