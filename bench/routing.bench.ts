// The router on held-out data: area over random routing beside baselines and the oracle, intents, feedback, each with its control.
// --quick: no networks and fewer shuffles.
import { measureRouting } from './support/learn/routing.ts';
import { printTable } from './support/report.ts';

const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
const isQuick = process.argv.includes('--quick');
const { router_gain, router_gain_ci_low, intent_accuracy } = await measureRouting({ log, show: printTable, isQuick });
log('done');
console.log(JSON.stringify({ router_gain, router_gain_ci_low, intent_accuracy }));
