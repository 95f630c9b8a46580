// Erasure: a word is planted in every part of a server as a tenant, the tenant is erased, and the word is searched for.
//   npm run bench -- erase
import { runEraseScenario } from './support/erase-scenario.ts';
import { printTable } from './support/report.ts';

const { planted, parts, numLost, eraseMs } = await runEraseScenario((line) => console.log(line));
console.log('');
printTable([
  ['planted in', 'before', 'traces after'],
  ...planted.map(({ part, evidence, traces }) => [part, evidence, String(traces)]),
]);
console.log('');
printTable([
  ['part', 'items erased', 'left'],
  ...parts.map(({ name, numFound, numLeft }) => [name, String(numFound), String(numLeft)]),
]);
const traces = planted.reduce((sum, one) => sum + one.traces, 0);
console.log('');
console.log(
  JSON.stringify({ bench: 'erase', traces, lost: numLost, parts: parts.length, erase_ms: Number(eraseMs.toFixed(1)) }),
);
process.exitCode = traces === 0 && numLost === 0 ? 0 : 1;
