// Effect of learning on unseen data, each figure with its control.
//   npm run bench -- learn                      everything; reports failing parts, runs the others, and exits with 1
//   npm run bench -- learn --part micro|lora|ewc|speed|routing|rerank|bank|facts|large
//   --model FILE --threads N --seeds N --patterns N --quick (fewer policies and shuffles of the router, 3 seeds of 6,
//   one LoRA of 3, 20,000 patterns of 100,000, no margins of micro)
//   --chat-model MODEL (facts and large: default TinyLlama 1.1B)
//   --rate N (micro: step of an instant update; repeat it for a table of several)
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { DEFAULT_MODELS } from '../src/hub/default-models.ts';
import { ADAPTER_PARTS } from './support/learn/adapter-parts.ts';
import { createFindings, showFindings } from './support/learn/findings.ts';
import { openLearnModel } from './support/learn/learn-model.ts';
import { type Part, runParts, runPartsApart, showOutcomes } from './support/learn/run-parts.ts';
import { printTable } from './support/report.ts';

/** The model of `npm start` in closed networks: TinyLlama 1.1B. */
const DEFAULT_CHAT_MODEL = DEFAULT_MODELS.find(({ source }) => source === 'npm')!.reference;

const { values } = parseArgs({
  options: {
    part: { type: 'string', multiple: true },
    model: { type: 'string', default: '../shared/models/stories15M-q8_0.gguf' },
    threads: { type: 'string', default: String(availableParallelism()) },
    seeds: { type: 'string' },
    patterns: { type: 'string' },
    quick: { type: 'boolean', default: false },
    rate: { type: 'string', multiple: true },
    'chat-model': { type: 'string', default: DEFAULT_CHAT_MODEL },
  },
});
const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
/** In the order of the promise. */
const PROMISED = [
  'router_gain',
  'router_gain_ci_low',
  'intent_accuracy',
  'microlora_loss_drop',
  'microlora_loss_elsewhere',
  'ewc_forgetting_ratio',
  'instant_p50_ms',
  'pattern_p99_ms',
  'corrections_needed',
  'paraphrase_hit',
  'elsewhere_changed',
  'facts_kept',
  'unrated_changed',
  'praise_changed',
  'unlearned',
  'loop_b_1b_seconds',
  'loop_b_1b_accepted',
  'loop_b_1b_control_accepted',
  'loop_b_1b_rss_mb',
  'loop_b_1b_rss_limit_mb',
];
const findings = createFindings(PROMISED);

const PARTS: Readonly<Record<string, Part['run']>> = {
  ...Object.fromEntries(Object.entries(ADAPTER_PARTS).map(([name, part]) => [name, () => onModel(part)])),
  async routing() {
    const { measureRouting } = await import('./support/learn/routing.ts');
    return measureRouting({ log, show: printTable, isQuick: values.quick }, findings);
  },
  async large() {
    const { measureLargeModel } = await import('./support/learn/large-model.ts');
    await measureLargeModel(values['chat-model'], findings, log, values.quick);
  },
  async rerank() {
    const { showRerank } = await import('./support/learn/rerank-table.ts');
    Object.assign(findings.figures, await showRerank(log));
  },
  async facts() {
    const { measureFacts } = await import('./support/learn/facts.ts');
    await measureFacts(values['chat-model'], findings, log);
  },
  async bank() {
    const { showBank } = await import('./support/learn/bank-table.ts');
    await showBank(Number(values.patterns ?? (values.quick ? 20_000 : 100_000)), findings);
  },
};

async function onModel(part: (typeof ADAPTER_PARTS)[string]): Promise<void> {
  if (!existsSync(values.model)) throw new Error(`no model at ${values.model}: pass --model FILE`);
  const model = await openLearnModel(values.model, Number(values.threads));
  await part(model, findings, {
    // With three seeds the interval of the ratio ranges from below 1 to above 3.
    numSeeds: Number(values.seeds ?? (values.quick ? 3 : 6)),
    isQuick: values.quick,
    rates: (values.rate ?? []).map(Number),
  });
  await model.dispose();
}

const chosen = values.part ?? Object.keys(PARTS);
if (!chosen.every((part) => Object.hasOwn(PARTS, part))) {
  console.error(`error: --part is one of ${Object.keys(PARTS).join(', ')}`);
  process.exit(2);
}

/** All arguments except the parts. */
const others = Object.entries(values).flatMap(([name, value]) => {
  if (name === 'part' || value === undefined || value === false) return [];
  return [value].flat().flatMap((one) => (one === true ? [`--${name}`] : [`--${name}`, String(one)]));
});

const isPart = process.send !== undefined;
const outcomes =
  chosen.length > 1
    ? await runPartsApart({ file: process.argv[1]!, args: others }, chosen, findings, log)
    : await runParts(chosen.map((name) => ({ name, run: PARTS[name]! })), isPart ? () => {} : log); // prettier-ignore
const isWhole = values.part !== undefined || PROMISED.every((name) => typeof findings.figures[name] === 'number');
const code = isWhole && outcomes.every(({ error }) => error === null) ? 0 : 1;
if (isPart) process.send!({ findings, outcomes }, () => process.exit(code));
else {
  showFindings(findings, PROMISED);
  showOutcomes(outcomes);
  console.log(JSON.stringify(findings.figures));
  process.exit(code);
}
