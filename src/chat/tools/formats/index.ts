import type { ToolFormat } from '../types.ts';
import { commandR } from './command-r.ts';
import { deepseek, deepseek31 } from './deepseek.ts';
import { deepseek32, deepseek4 } from './deepseek-dsml.ts';
import { functionary31 } from './functionary31.ts';
import { functionary32 } from './functionary32.ts';
import { gemma4 } from './gemma4.ts';
import { gigachat } from './gigachat.ts';
import { glm } from './glm.ts';
import { gptOss } from './gpt-oss.ts';
import { hermes } from './hermes.ts';
import { kimi } from './kimi.ts';
import { lfm2 } from './lfm2.ts';
import { llama3 } from './llama3.ts';
import { minimaxM3 } from './minimax-m3.ts';
import { mistral } from './mistral.ts';
import { mistralNamed } from './mistral-named.ts';
import { plainJson } from './plain-json.ts';
import { qwenCoder } from './qwen-coder.ts';
import { seed } from './seed.ts';
import { solar } from './solar.ts';
import { toolCallsLines } from './tool-calls-lines.ts';
import { toolCallsList } from './tool-calls-list.ts';

/** All tool-call formats, in the order of detection. */
export const TOOL_FORMATS: readonly ToolFormat[] = [
  hermes,
  qwenCoder,
  glm,
  seed,
  toolCallsList,
  toolCallsLines,
  mistralNamed,
  mistral,
  functionary31,
  functionary32,
  kimi,
  deepseek,
  deepseek31,
  deepseek32,
  deepseek4,
  solar,
  gptOss,
  gemma4,
  minimaxM3,
  commandR,
  gigachat,
  llama3,
  lfm2,
  plainJson,
];
