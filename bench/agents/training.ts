// Training tools: forgetting of self-distillation and SFT at the same held-out loss (TinyLlama 1.1B, which follows an answer in its prompt);
// DPO with true and shuffled labels, GRPO with true and random rewards (stories15M). Prompts of every figure are held out.
import { existsSync } from 'node:fs';
import { findSmallModel } from '../support/agents/small-model.ts';
import { printTable } from '../support/report.ts';
import { measureForgetting } from './support/training-forgetting.ts';
import { measureGrpo } from './support/training-grpo.ts';
import { measurePreference } from './support/training-preference.ts';

const MODEL = '../shared/models/stories15M-q8_0.gguf';

export async function measure({ isDevelopment = false } = {}): Promise<Record<string, number>> {
  if (!existsSync(MODEL)) {
    console.error(`no training: ${MODEL} is missing`);
    return {};
  }
  const preference = await measurePreference(MODEL);
  const grpo = await measureGrpo(MODEL, isDevelopment);
  const forgetting = await measureForgetting(await findSmallModel(), isDevelopment);
  printTable([['training', 'value'], ...[preference, grpo, forgetting].flatMap((figures) => Object.entries(figures).map(([name, value]) => [name, value.toFixed(4)]))]); // prettier-ignore
  return { ...preference, ...grpo, ...forgetting };
}
