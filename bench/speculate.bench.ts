// Speculative decoding against plain decoding of the same model, interleaved: what guessing ahead gains, and that no token changes.
//   npm run bench -- speculate                    TinyLlama 1.1B, and stories15M for the comparison of tokens
//   npm run bench -- speculate --part lookup      one of lookup, learned, grammar, worst, draft, identical; several times
//   npm run bench -- speculate --model MODEL --threads N --quick
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { GenerateOptions, Model } from '../src/index.ts';
import { importBuilt } from './support/dist.ts';
import { printTable } from './support/report.ts';
import { countDifferences } from './support/speculate/identical.ts';
import { EDITS, FORMS, QUESTIONS, STORIES, TALES } from './support/speculate/tasks.ts';
import { comparePairs, type PairResult, type Task } from './support/speculate/pairs.ts';

const { DEFAULT_MODELS } = await importBuilt<typeof import('../src/hub/default-models.ts')>('hub/default-models');
const DEFAULT_CHAT_MODEL = DEFAULT_MODELS.find(({ source }) => source === 'npm')!.reference;

const PARTS = ['lookup', 'learned', 'grammar', 'worst', 'draft', 'identical'] as const;
type PartName = (typeof PARTS)[number];

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: DEFAULT_CHAT_MODEL },
    'small-model': { type: 'string', default: '../shared/models/stories15M-q8_0.gguf' },
    threads: { type: 'string', default: String(availableParallelism()) },
    part: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
  },
});
const parts = (values.part ?? PARTS) as readonly PartName[];
const unknownPart = parts.find((part) => !PARTS.includes(part));
if (unknownPart !== undefined) {
  console.error(`error: --part is "${unknownPart}", must be one of ${PARTS.join(', ')}`);
  process.exit(2);
}
const { loadModel } = await importBuilt<typeof import('../src/index.ts')>('index');
const numThreads = Number(values.threads);
const { quick } = values;
const figures: Record<string, number | null> = {};
const rows: string[][] = [['task', 'speedup', 'plain tok/s', 'drafting tok/s', 'accepted', 'rejected', 'identical']];

function show(name: string, result: PairResult): void {
  const { speedup, plainRate, draftingRate, numAccepted, numRejected, isIdentical } = result;
  rows.push([name, speedup.toFixed(2), plainRate.toFixed(1), draftingRate.toFixed(1), String(numAccepted), String(numRejected), isIdentical ? 'yes' : 'NO']); // prettier-ignore
  console.error(`${name}: ${speedup.toFixed(2)}`);
  if (!isIdentical) process.exitCode = 1;
}

/** Asks the questions often enough that the tenant's answers are known, as its users would. */
async function askOften(model: Model, tasks: readonly Task[], numRequests: number): Promise<void> {
  for (let i = 0; i < numRequests; i += 4) {
    const group = Array.from({ length: 4 }, (_, j) => tasks[(i + j) % tasks.length]!);
    await Promise.all(group.map(({ prompt, options }) => model.generate(prompt, options)));
  }
}

const isLarge = parts.some((part) => part !== 'identical' && part !== 'draft');
if (isLarge) {
  const open = (speculation: 'auto' | 'off') => loadModel(values.model, { numThreads, speculation });
  const drafting = await open('auto');
  const plain = await open('off');
  const greedy: GenerateOptions = { temperature: 0, maxTokens: quick ? 32 : 96 };
  const compare = (tasks: readonly Task[]) => comparePairs(plain, drafting, quick ? tasks.slice(0, 3) : tasks);
  const questions = QUESTIONS.map((content) => ({ prompt: [{ role: 'user' as const, content }], options: { ...greedy, tenant: 'asking' } })); // prettier-ignore
  // Warms up, and measures what a step costs.
  await compare([{ prompt: 'The sea', options: greedy }]);
  if (parts.includes('lookup')) {
    const tasks = EDITS.map(({ prompt, prediction }) => ({ prompt: [{ role: 'user' as const, content: prompt }], options: { ...greedy, maxTokens: 160 }, prediction })); // prettier-ignore
    const plainTasks = tasks.map(({ prompt, options }) => ({ prompt, options }));
    const result = await compare(plainTasks);
    show('edit, from the prompt', result);
    figures['lookup_speedup'] = result.speedup;
    const predicted = await compare(tasks.map(({ prompt, options, prediction }) => ({ prompt, options: { ...options, prediction, tenant: 'predicting' } }))); // prettier-ignore
    show('edit, with a prediction', predicted);
    figures['prediction_speedup'] = predicted.speedup;
  }
  if (parts.includes('learned')) {
    await askOften(drafting, questions, quick ? 8 : 200);
    const result = await compare(questions);
    show('repeated questions', result);
    figures['learned_speedup'] = result.speedup;
    const strangers = questions.map(({ prompt, options }) => ({ prompt, options: { ...options, tenant: 'stranger' } }));
    const control = await compare(strangers);
    show('the same of another tenant', control);
    figures['learned_control'] = control.speedup;
  }
  if (parts.includes('grammar')) {
    const tasks = FORMS.map(({ prompt, schema }) => ({ prompt: [{ role: 'user' as const, content: prompt }], options: { ...greedy, maxTokens: 200, tenant: 'forms', grammar: { type: 'json_schema' as const, schema } } })); // prettier-ignore
    const result = await compare(tasks);
    show('JSON under a schema', result);
    figures['grammar_speedup'] = result.speedup;
  }
  if (parts.includes('worst')) {
    const tasks = STORIES.map((prompt, seed) => ({ prompt, options: { temperature: 1.3, topP: 1, seed, maxTokens: quick ? 32 : 128, ignoreEos: true, tenant: `random ${seed}` } })); // prettier-ignore
    const result = await compare(tasks);
    show('random text', result);
    figures['worst_case'] = result.speedup;
  }
  await drafting.dispose();
  await plain.dispose();
}
if (parts.includes('draft')) {
  const open = (speculation: 'auto' | 'off') =>
    loadModel(values.model, { numThreads, speculation, draftModel: values['small-model'] });
  const [drafting, plain] = [await open('auto'), await open('off')];
  const short = { temperature: 0, maxTokens: quick ? 24 : 80, ignoreEos: true };
  const tasks = TALES.map((prompt, i) => ({ prompt, options: { ...short, tenant: `tale ${i}` } }));
  await comparePairs(plain, drafting, tasks.slice(0, 1));
  const before = (await drafting.stats()).drafts.model;
  const result = await comparePairs(plain, drafting, tasks);
  const after = (await drafting.stats()).drafts.model;
  const numProposed = after.numProposed - before.numProposed;
  show('tales, with a draft model', result);
  figures['draft_speedup'] = result.speedup;
  figures['draft_acceptance'] = numProposed === 0 ? null : (after.numAccepted - before.numAccepted) / numProposed;
  figures['draft_proposed'] = numProposed;
  await drafting.dispose();
  await plain.dispose();
}
if (parts.includes('identical')) {
  const open = (speculation: 'auto' | 'off') => loadModel(values['small-model'], { numThreads, speculation });
  const [drafting, plain] = [await open('auto'), await open('off')];
  const { numSequences, numDifferent, numAccepted } = await countDifferences(plain, drafting, quick ? 100 : 2016);
  console.error(`${numSequences} sequences, ${numDifferent} different, ${numAccepted} drafted tokens accepted`);
  figures['identical'] = numDifferent === 0 ? 1 : 0;
  figures['sequences'] = numSequences;
  if (numDifferent > 0) process.exitCode = 1;
  await drafting.dispose();
  await plain.dispose();
}
if (rows.length > 1) printTable(rows);
console.log(JSON.stringify({ bench: 'speculate', arch: process.arch, numThreads, quick, ...figures }));
