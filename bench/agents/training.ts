// Training tools: DPO with true and shuffled labels, GRPO with true and random rewards (stories15M); forgetting of self-distillation and
// SFT (TinyLlama 1.1B, which follows an answer in its prompt). Prompts of every figure are held out.
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
  const shown = async (figures: Promise<Record<string, number>>): Promise<Record<string, number>> => {
    console.error(JSON.stringify(await figures));
    return figures;
  };
  // A core each: the models have nothing in common.
  const [small, forgetting] = await Promise.all([
    shown(measurePreference(MODEL)).then(async (preference) => ({ ...preference, ...(await shown(measureGrpo(MODEL, isDevelopment))) })), // prettier-ignore
    findSmallModel().then((path) => shown(measureForgetting(path, isDevelopment))),
  ]);
  const all = { ...small, ...forgetting };
  printTable([['training', 'value'], ...Object.entries(all).map(([name, value]) => [name, value.toFixed(4)])]);
  return all;
}
