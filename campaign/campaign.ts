// npm run campaign -- [PART …] [--minutes N] [--seed S] [--rounds N]: attacks a real server from outside. Without a part, all of them.
// Only loopback addresses and temporary folders are used. Exit code 1: a promise was broken.
import { parseArgs } from 'node:util';
import type { PartOptions } from './part.ts';
import { PARTS } from './parts.ts';
import { runPart } from './run-part.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string' },
  },
});

function numberOf(name: string, text: string, max: number): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && value <= max) return value;
  console.error(`error: --${name} is "${text}", must be a number above 0 and at most ${max}`);
  process.exit(2);
}

const unknown = positionals.filter((name) => !PARTS.some((part) => part.name === name));
if (unknown.length > 0) {
  console.error(`error: there is no part ${unknown.join(', ')}; the parts are:`);
  for (const { name, summary } of PARTS) console.error(`  ${name.padEnd(8)} ${summary}`);
  process.exit(2);
}
const options: PartOptions = {
  minutes: numberOf('minutes', values.minutes, 24 * 60),
  seed: numberOf('seed', values.seed, 2 ** 31),
  ...(values.rounds === undefined ? {} : { maxRounds: numberOf('rounds', values.rounds, 1_000_000) }),
  log: (line) => console.error(`  ${line}`),
};
const chosen = PARTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const lines: Record<string, unknown> = { campaign: chosen.map(({ name }) => name).join(' '), seed: options.seed };
let numProblems = 0;
for (const part of chosen) {
  const { figures, problems, slowness = [] } = await runPart(part, options);
  numProblems += problems.length + slowness.length;
  Object.assign(lines, chosen.length === 1 ? figures : { [part.name]: figures });
}
console.log(JSON.stringify({ ...lines, problems: numProblems }));
process.exit(numProblems === 0 ? 0 : 1);
