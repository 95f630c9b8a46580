// The router on held-out data: area over random routing beside baselines and the oracle, intents, feedback, each with its control.
import { measureRouting } from './support/learn/routing.ts';
import { printTable } from './support/report.ts';

const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
const { router_gain, router_gain_ci_low, intent_accuracy } = await measureRouting(log, printTable);
log('done');
console.log(JSON.stringify({ router_gain, router_gain_ci_low, intent_accuracy }));
