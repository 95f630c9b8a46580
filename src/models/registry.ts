import { RuvLLMError } from '../core/errors.ts';
import type { Architecture } from './architecture.ts';
import { bert } from './bert.ts';
import { gemma2 } from './gemma2.ts';
import { gemma3 } from './gemma3.ts';
import { llama } from './llama.ts';
import { phi3 } from './phi3.ts';
import { qwen2 } from './qwen2.ts';
import { qwen3 } from './qwen3.ts';

/** All supported architectures by their name in files. */
export const architectures: ReadonlyMap<string, Architecture> = new Map(
  [llama, qwen2, qwen3, phi3, gemma2, gemma3, bert].map((architecture) => [architecture.name, architecture]),
);

/** Whether files of this architecture generate text. */
export const isDecoder = (name: string): boolean => architectures.get(name)?.isCausal === true;

/** The architecture, or `unknown_architecture` with the name and the supported ones. */
export function findArchitecture(name: string): Architecture {
  const architecture = architectures.get(name);
  if (architecture !== undefined) return architecture;
  const supported = [...architectures.keys()];
  throw new RuvLLMError(
    'unknown_architecture',
    `no forward pass for architecture "${name.slice(0, 80)}" (supported: ${supported.join(', ')})`,
    { data: { architecture: name.slice(0, 80), supported } },
  );
}
