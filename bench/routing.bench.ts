// The router on held-out data: area over random routing beside baselines and the oracle, intents, feedback, each with its control.
//   npm run bench -- routing             everything; --quick: no networks and fewer shuffles
//   --unseen-subjects, --seen-subjects, --four-models, --news, --speed, --intents, --feedback    that part alone
//   --only NAME,NAME --shuffles N        of the tables of models
import { parseArgs } from 'node:util';
import {
  measureBanking,
  measureDecisions,
  measureFeedback,
  measureFourModels,
  measureNews,
  measureRouting,
  measureSeenSubjects,
  measureUnseenSubjects,
  openPart,
} from './support/learn/routing.ts';
import { printTable } from './support/report.ts';

const PARTS = {
  'unseen-subjects': measureUnseenSubjects,
  'seen-subjects': measureSeenSubjects,
  'four-models': measureFourModels,
  news: measureNews,
  speed: measureDecisions,
  intents: measureBanking,
  feedback: measureFeedback,
};
const flags = Object.fromEntries(['quick', ...Object.keys(PARTS)].map((name) => [name, { type: 'boolean' } as const]));
const { values: given } = parseArgs({ options: { ...flags, only: { type: 'string' }, shuffles: { type: 'string' } } });
const values = given as Readonly<Record<string, string | boolean | undefined>>;
const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
const options = {
  log,
  show: printTable,
  isQuick: values['quick'] === true,
  only: (values['only'] as string | undefined)?.split(','),
  numShuffles: values['shuffles'] === undefined ? undefined : Number(values['shuffles']),
};
const asked = Object.entries(PARTS).filter(([name]) => values[name] === true);
const part = asked.length === 0 ? null : openPart(options);
for (const [, measure] of asked) await measure(part!);
if (part === null) {
  const { router_gain, router_gain_ci_low, router_gain_ci_low_by_subject, router_gain_shuffled_most, intent_accuracy } = await measureRouting(options); // prettier-ignore
  console.log(JSON.stringify({ router_gain, router_gain_ci_low, router_gain_ci_low_by_subject, router_gain_shuffled_most, intent_accuracy })); // prettier-ignore
}
log('done');
process.exit(0);
