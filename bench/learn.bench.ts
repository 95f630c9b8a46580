// What learning changes, measured on data it did not see, each figure with its control.
//   npm run bench -- learn                      everything
//   npm run bench -- learn --part micro|lora|ewc|speed|routing|rerank|bank
//   --model FILE --threads N --seeds N --patterns N --quick (fewer policies and shuffles of the router, no margins of micro)
//   --rate N (micro: step of an instant update; again and again for a table of several)
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { ADAPTER_PARTS, type Figures } from './support/learn/adapter-parts.ts';
import { openLearnModel } from './support/learn/learn-model.ts';
import { printTable } from './support/report.ts';

const { values } = parseArgs({
  options: {
    part: { type: 'string', multiple: true },
    model: { type: 'string', default: '../shared/models/stories15M-q8_0.gguf' },
    threads: { type: 'string', default: String(availableParallelism()) },
    seeds: { type: 'string', default: '3' },
    patterns: { type: 'string', default: '100000' },
    quick: { type: 'boolean', default: false },
    rate: { type: 'string', multiple: true },
  },
});
const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
/** In the order of the promise; a part that did not run has none. */
const figures: Figures = {
  router_gain: null,
  router_gain_ci_low: null,
  intent_accuracy: null,
  microlora_loss_drop: null,
  microlora_loss_elsewhere: null,
  ewc_forgetting_ratio: null,
  instant_p50_ms: null,
  pattern_p99_ms: null,
};

const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  ...Object.fromEntries(Object.entries(ADAPTER_PARTS).map(([name, part]) => [name, () => onModel(part)])),
  async routing() {
    const { measureRouting } = await import('./support/learn/routing.ts');
    const measured = await measureRouting({ log, show: printTable, isQuick: values.quick });
    const { router_gain, router_gain_ci_low, router_gain_ci_low_by_subject, router_gain_shuffled_most } = measured;
    const { intent_accuracy } = measured;
    const controls = { router_gain_ci_low_by_subject, router_gain_shuffled_most };
    Object.assign(figures, { router_gain, router_gain_ci_low, intent_accuracy, ...controls });
  },
  async rerank() {
    const { showRerank } = await import('./support/learn/rerank-table.ts');
    Object.assign(figures, await showRerank(log));
  },
  async bank() {
    const { measureBank } = await import('./support/learn/bank.ts');
    const { numPatterns, p50Ms, p99Ms, counts, created } = await measureBank(Number(values.patterns));
    printTable([
      ['reasoning bank', ''],
      ['patterns', String(numPatterns)],
      ['search p50, p99 ms', `${p50Ms.toFixed(2)}, ${p99Ms.toFixed(2)}`],
      ['patterns before, and after each of four distillations', counts.join(', ')],
      ['new ones of each', created.join(', ')],
    ]);
    figures['pattern_p99_ms'] = p99Ms;
  },
};

async function onModel(part: (typeof ADAPTER_PARTS)[string]): Promise<void> {
  if (!existsSync(values.model)) throw new Error(`no model at ${values.model}: pass --model FILE`);
  const model = await openLearnModel(values.model, Number(values.threads));
  await part(model, figures, {
    numSeeds: Number(values.seeds),
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
for (const part of chosen) {
  log(`${part} …`);
  await PARTS[part]!();
}
console.log(JSON.stringify(figures));
