import { RuvLLMError } from '../core/errors.ts';
import type { Architecture } from './architecture.ts';
import { bert } from './bert.ts';
import { cohere2 } from './cohere2.ts';
import { commandR } from './command-r.ts';
import { deepseek2 } from './deepseek2.ts';
import { falconH1 } from './falcon-h1.ts';
import { gemma } from './gemma.ts';
import { gemma2 } from './gemma2.ts';
import { gemma3 } from './gemma3.ts';
import { gemma3n } from './gemma3n.ts';
import { gemma4 } from './gemma4.ts';
import { glm4 } from './glm4.ts';
import { granite, graniteMoe } from './granite.ts';
import { graniteHybrid } from './granite-hybrid.ts';
import { lfm2, lfm2moe } from './lfm2.ts';
import { gptOss } from './gpt-oss.ts';
import { llama } from './llama.ts';
import { olmo2 } from './olmo2.ts';
import { phi2 } from './phi2.ts';
import { phi3 } from './phi3.ts';
import { qwen2 } from './qwen2.ts';
import { qwen2moe } from './qwen2moe.ts';
import { qwen3 } from './qwen3.ts';
import { qwen3moe } from './qwen3moe.ts';
import { qwen35, qwen35moe, qwen3next } from './qwen3next.ts';
import { smollm3 } from './smollm3.ts';
import { starcoder2 } from './starcoder2.ts';

const ALL: readonly Architecture[] = [
  llama,
  qwen2,
  qwen2moe,
  qwen3,
  qwen3moe,
  phi2,
  phi3,
  gemma,
  gemma2,
  gemma3,
  gemma3n,
  gemma4,
  smollm3,
  olmo2,
  granite,
  graniteMoe,
  graniteHybrid,
  glm4,
  starcoder2,
  commandR,
  cohere2,
  gptOss,
  lfm2,
  lfm2moe,
  deepseek2,
  falconH1,
  qwen3next,
  qwen35,
  qwen35moe,
  bert,
];

/** All supported architectures by their name in files. */
export const architectures: ReadonlyMap<string, Architecture> = new Map(
  ALL.map((architecture) => [architecture.name, architecture]),
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
