// The router on held-out data: area over random routing beside baselines and the oracle, intents, feedback, each with
// its control.
//   npm run bench -- routing             everything; --quick: no networks and fewer shuffles
//   --unseen-subjects, --seen-subjects, --four-models, --news, --speed, --intents, --feedback    only that part
//   --only NAME,NAME --shuffles N        for the tables of models
import { parseArgs } from 'node:util';
import { createFindings } from './support/learn/findings.ts';
import { measureRouting, ROUTING_PARTS } from './support/learn/routing.ts';
import { showOutcomes } from './support/learn/run-parts.ts';
import { printTable } from './support/report.ts';

const names = Object.keys(ROUTING_PARTS);
const flags = Object.fromEntries(['quick', ...names].map((name) => [name, { type: 'boolean' } as const]));
const { values: parsed } = parseArgs({ options: { ...flags, only: { type: 'string' }, shuffles: { type: 'string' } } });
const values = parsed as Readonly<Record<string, string | boolean | undefined>>;
const began = performance.now();
const log = (line: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`);
const options = {
  log,
  show: printTable,
  isQuick: values['quick'] === true,
  only: (values['only'] as string | undefined)?.split(','),
  numShuffles: values['shuffles'] === undefined ? undefined : Number(values['shuffles']),
};
const selected = names.filter((name) => values[name] === true);
const promised = selected.length === 0 ? ['router_gain', 'router_gain_ci_low', 'intent_accuracy'] : [];
const findings = createFindings(promised);
const outcomes = await measureRouting(options, findings, selected.length === 0 ? names : selected);
showOutcomes(outcomes);
console.log(JSON.stringify(findings.figures));
process.exit(outcomes.every(({ error }) => error === null) ? 0 : 1);
