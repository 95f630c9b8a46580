// The router on held-out data: area over random routing beside baselines and the oracle, intents, feedback, each with its control.
// --quick: no networks and fewer shuffles. --unseen-subjects, --seen-subjects, --four-models, --intents, --feedback: that part alone.
import {
  measureBanking,
  measureFeedback,
  measureFourModels,
  measureRouting,
  measureSeenSubjects,
  measureUnseenSubjects,
  openPart,
} from './support/learn/routing.ts';
import { printTable } from './support/report.ts';

const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
const options = { log, show: printTable, isQuick: process.argv.includes('--quick') };
const PARTS = {
  '--unseen-subjects': measureUnseenSubjects,
  '--seen-subjects': measureSeenSubjects,
  '--four-models': measureFourModels,
  '--intents': measureBanking,
  '--feedback': measureFeedback,
};
const asked = Object.entries(PARTS).filter(([flag]) => process.argv.includes(flag));
for (const [, measure] of asked) await measure(openPart(options));
if (asked.length === 0) {
  const { router_gain, router_gain_ci_low, router_gain_ci_low_by_subject, router_gain_shuffled_most, intent_accuracy } = await measureRouting(options); // prettier-ignore
  console.log(JSON.stringify({ router_gain, router_gain_ci_low, router_gain_ci_low_by_subject, router_gain_shuffled_most, intent_accuracy })); // prettier-ignore
}
log('done');
process.exit(0);
