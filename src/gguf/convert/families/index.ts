import type { HfFamily } from '../hf-family.ts';
import { cohereFamilies } from './cohere.ts';
import { deepseek2Families } from './deepseek2.ts';
import { falconH1Family } from './falcon-h1.ts';
import { gemma3nFamily } from './gemma3n.ts';
import { gemma4Family } from './gemma4.ts';
import { gemmaFamilies } from './gemma.ts';
import { glm4Family } from './glm4.ts';
import { gptOssFamily } from './gpt-oss.ts';
import { graniteFamilies } from './granite.ts';
import { lfm2Families } from './lfm2.ts';
import { llamaFamilies } from './llama.ts';
import { olmoFamily } from './olmo.ts';
import { phiFamilies } from './phi.ts';
import { qwenFamilies } from './qwen.ts';
import { qwenNextFamilies } from './qwen-next.ts';
import { smollm3Family } from './smollm3.ts';
import { starcoder2Family } from './starcoder2.ts';

/** All kinds of decoders that can be converted; the first that fits a checkpoint is used. */
export const HF_FAMILIES: readonly HfFamily[] = [
  ...llamaFamilies,
  ...qwenFamilies,
  ...phiFamilies,
  ...gemmaFamilies,
  gemma3nFamily,
  gemma4Family,
  smollm3Family,
  olmoFamily,
  ...graniteFamilies,
  glm4Family,
  starcoder2Family,
  ...cohereFamilies,
  gptOssFamily,
  ...lfm2Families,
  ...deepseek2Families,
  falconH1Family,
  ...qwenNextFamilies,
];
