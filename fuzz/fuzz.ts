// npm run fuzz -- [TARGET …] [--seconds 60] [--seed 1] [--save]: changes inputs and keeps those that reach new code. Inputs that show a
// bug are saved in .cache/fuzz. With --save the smallest set that reaches everything replaces the corpus. Exit code 1: a bug.
import { parseArgs } from 'node:util';
import { clearCorpus, corpusFolder, readCorpus, saveInputs } from './corpus.ts';
import { fuzz, minimize } from './loop.ts';
import { TARGETS } from './targets.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    save: { type: 'boolean', default: false },
  },
});
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
const unknown = positionals.filter((name) => !TARGETS.some((target) => target.name === name));
if (unknown.length > 0 || !(seconds > 0 && seconds <= 86_400) || !Number.isSafeInteger(seed)) {
  console.error(`usage: npm run fuzz -- [TARGET …] [--seconds 60] [--seed 1] [--save], targets: ${TARGETS.map(({ name }) => name).join(', ')}`); // prettier-ignore
  process.exit(2);
}
/** Of a corpus in the repository: it is replayed in every test run. */
const MAX_FILES = 60;
const MAX_BYTES = 65_536;

function chooseSmall(inputs: readonly Uint8Array[]): Uint8Array[] {
  let numBytes = 0;
  return inputs.slice(0, MAX_FILES).filter(({ length }) => (numBytes += length) <= MAX_BYTES);
}

let numBugs = 0;
const line: Record<string, unknown> = { fuzz: true, seed };
for (const target of TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  const corpus = readCorpus(target.name).map(({ bytes }) => bytes);
  const { numInputs, numBlocks, bugs, found } = await fuzz(target, corpus, { seconds, seed });
  console.log(`${target.name.padEnd(12)} ${numInputs} inputs, ${numBlocks} blocks of code, ${found.length} new inputs, ${bugs.length} bugs`); // prettier-ignore
  for (const [index, path] of saveInputs(
    `.cache/fuzz/${target.name}`,
    bugs.map(({ bytes }) => bytes),
  ).entries()) {
    console.log(`  BUG ${path}: ${bugs[index]!.reason.split('\n').slice(0, 4).join(' | ')}`);
  }
  if (values.save) {
    const kept = chooseSmall(await minimize(target, [...corpus, ...found]));
    clearCorpus(target.name);
    saveInputs(corpusFolder(target.name), kept);
    console.log(`  the corpus has ${kept.length} files`);
  }
  numBugs += bugs.length;
  line[target.name] = { inputs: numInputs, blocks: numBlocks, bugs: bugs.length };
}
console.log(JSON.stringify({ ...line, bugs: numBugs }));
process.exit(numBugs === 0 ? 0 : 1);
