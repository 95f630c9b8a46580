// The router on held-out data: area over random routing beside baselines and the oracle, intents, feedback, each with its control.
import { curveTable, gainTable, intentTable, measureRouting } from './support/learn/routing.ts';
import { printTable } from './support/report.ts';

const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
const result = await measureRouting(log);
printTable(gainTable('two models, unseen subjects', result.mmlu));
for (const { seed, table } of result.otherSplits) printTable(gainTable(`split ${seed}`, table));
printTable(gainTable('four models, unseen prompts', result.alpaca));
printTable(intentTable(result.intents));
printTable(curveTable(result.intents));
const { before, afterGood, afterBad } = result.news;
printTable([
  ['share of one model', 'before', 'after good news', 'after bad news'],
  ['linear', ...[before, afterGood, afterBad].map((share) => share.toFixed(3))],
]);
const { router_gain, router_gain_ci_low, intent_accuracy } = result;
console.log(JSON.stringify({ router_gain, router_gain_ci_low, intent_accuracy }));
