// Recall of the memory: BM25, vectors and both together, on texts with known evidence, and whole documents by size. Requires
// the texts beside the repository. Vectors are cached in .cache/bench/recall.
//   npm run bench -- recall [--quick] [--set NAME]
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Embedder } from '../src/memory/embedder-types.ts';
import type { Memory } from '../src/memory/memory.ts';
import { readArticles, readDocuments, readFollowUps } from './support/recall/articles.ts';
import { compareAt, compareRanks, type Outcome } from './support/recall/bootstrap.ts';
import { readCode } from './support/recall/code.ts';
import { makeConversations } from './support/recall/conversations.ts';
import { readLetters } from './support/recall/letters.ts';
import { readManual } from './support/recall/manual.ts';
import { makeReadingGroup } from './support/recall/reading-group.ts';
import { readSpeeches } from './support/recall/speeches.ts';
import { makeTwoHop } from './support/recall/two-hop.ts';
import type { RecallSet } from './support/recall/sets.ts';
import { importBuilt } from './support/dist.ts';
import { median, printTable } from './support/report.ts';

const { openNodeMemory } = await importBuilt<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory'); // prettier-ignore
const { openModelEmbedder } = await importBuilt<typeof import('../src/node/memory/model-embedder.ts')>('node/memory/model-embedder'); // prettier-ignore
const { openTableEmbedder } = await importBuilt<typeof import('../src/node/memory/table-embedder.ts')>('node/memory/table-embedder'); // prettier-ignore
const { fillMemory } = await importBuilt<typeof import('../src/learning/evaluation/memory-recall.ts')>('learning/evaluation/memory-recall'); // prettier-ignore
const { findEncoder } = await importBuilt<typeof import('../src/node/memory/find-encoder.ts')>('node/memory/find-encoder'); // prettier-ignore

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, set: { type: 'string' } } });
// From .cache/tools/bench, where this runs.
const root = fileURLToPath(new URL('../../..', import.meta.url));
const shared = fileURLToPath(new URL('../../../../shared/', import.meta.url));
const wikitext = `${shared}suites/text/wikitext2-valid.txt`;
const stories = `${shared}models/stories15M-q8_0.gguf`;
const cache = join(root, '.cache/bench/recall');
const TENANT = 'bench';
const K = 20;
const figures: Record<string, unknown> = {};
const log = (line: string): void => console.error(line);

if (!existsSync(wikitext)) {
  log(`error: ${wikitext} not found`);
  process.exit(2);
}
const share = values.quick ? 4 : 1;
const count = (whole: number): number => Math.ceil(whole / share);
const sets: readonly RecallSet[] = [
  readArticles(wikitext, count(600), count(300)),
  makeConversations('conversations', { seed: 1, numTurns: count(2400) }),
  makeReadingGroup(wikitext, count(2000), count(300)),
  readManual([join(root, 'docs'), join(root, 'src')], count(300)),
  readCode(join(root, 'src'), count(800), count(300)),
].filter(isChosen);
/** Questions that refer to the conversation before them. */
const followUpSets: readonly RecallSet[] = [
  readFollowUps(wikitext, count(2000), count(300)),
  makeConversations('conversation follow-ups', { seed: 2, numTurns: count(2400), isFollowUp: true }),
].filter(isChosen);

/** Questions whose answer is in a text that shares only a name with the text that the question matches. */
const twoHopSets: readonly RecallSet[] = [
  makeTwoHop('two hops', { seed: 3, isHeldOut: false }),
  makeTwoHop('two hops, held out', { seed: 4, isHeldOut: true }),
].filter(isChosen);

/** Measured after a change of the search, never before: no choice may depend on it. */
const heldOutSets: readonly RecallSet[] = [
  { name: 'letters', read: () => readLetters(cache, count(400)) },
  { name: 'speeches', read: () => readSpeeches(cache, count(1500), count(400)) },
].flatMap(({ name, read }) => (values.set === undefined || name === values.set ? [read()] : []));

function isChosen({ name }: RecallSet): boolean {
  return values.set === undefined || name === values.set;
}

/** The share of the evidence among the first k. */
const at = (ranks: readonly number[], k: number): string =>
  (ranks.filter((rank) => rank < k).length / ranks.length).toFixed(3);

/** Embeds each text once over all runs. */
function withCache(name: string, inner: Embedder): Embedder & { save(): void; readonly times: number[] } {
  mkdirSync(cache, { recursive: true });
  const path = join(cache, `${name}-${createHash('sha256').update(inner.fingerprint).digest('hex').slice(0, 16)}.json`);
  const vectors = new Map<string, string>(existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : []);
  const times: number[] = [];
  return {
    fingerprint: inner.fingerprint,
    dim: inner.dim,
    times,
    async embed(text) {
      const key = createHash('sha256').update(text).digest('base64url').slice(0, 22);
      const cached = vectors.get(key);
      if (cached !== undefined) {
        const bytes = Uint8Array.from(Buffer.from(cached, 'base64'));
        return new Float32Array(bytes.buffer);
      }
      const vector = await inner.embed(text);
      vectors.set(key, Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64'));
      return vector;
    },
    save: () => writeFileSync(path, JSON.stringify([...vectors])),
  };
}

async function withMemory<T>(embedder: Embedder, run: (memory: Memory) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-bench-recall-'));
  const masterKey = { key: new Uint8Array(32).fill(5) };
  const memory = await openNodeMemory({ place: join(folder, 'memory'), masterKey, embedder, report: log });
  try {
    return await run(memory);
  } finally {
    await memory.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

type RankOf = (found: readonly { readonly record: { readonly id: string } }[], evidence: number) => number;

/** The rank of the evidence among results, from 0; Infinity: not among them. */
async function fill(memory: Memory, embedder: Embedder, { texts }: RecallSet): Promise<RankOf> {
  const { ranksOf } = await fillMemory(memory, embedder, TENANT, texts);
  return (found, evidence) => ranksOf(found, [evidence])[0]!;
}

/** Ranks of the evidence by each method among the first 20, and of the hybrid search with an unrelated conversation before the question. */
async function measure(embedder: Embedder, set: RecallSet): Promise<Outcome & { readonly unrelated: number[] }> {
  return withMemory(embedder, async (memory) => {
    const filled = await fillMemory(memory, embedder, TENANT, set.texts);
    const outcome = { bm25: [], vector: [], hybrid: [], searchMs: [], unrelated: [] } as Outcome & { unrelated: number[] }; // prettier-ignore
    for (const [i, { text, evidence }] of set.questions.entries()) {
      const relevant = [evidence];
      const { bm25, vector, hybrid, searchMs } = await filled.recall({ text, relevant }, K);
      outcome.bm25.push(bm25[0]!);
      outcome.vector.push(vector[0]!);
      outcome.hybrid.push(hybrid[0]!);
      outcome.searchMs.push(searchMs);
      const unrelated = set.questions[(i + Math.ceil(set.questions.length / 2)) % set.questions.length]!;
      const { results } = await memory.search(TENANT, { text, turns: [unrelated.text], k: K });
      outcome.unrelated.push(filled.ranksOf(results, relevant)[0]!);
    }
    return outcome;
  });
}

/** The outcome of each set, printed as a table. */
async function measureAll(embedder: ReturnType<typeof withCache>, name: string, some: readonly RecallSet[]) {
  const rows = [['set', 'questions', 'BM25 @10', `${name} @10`, 'hybrid @10', 'BM25 @20', `${name} @20`, 'hybrid @20', 'search p50 ms']]; // prettier-ignore
  const outcomes = [];
  for (const set of some) {
    log(`${name}: ${set.name}, ${set.texts.length} texts …`);
    const outcome = await measure(embedder, set);
    embedder.save();
    outcomes.push(outcome);
    const { bm25, vector, hybrid, searchMs } = outcome;
    rows.push([set.name, String(set.questions.length), ...[10, 20].flatMap((k) => [bm25, vector, hybrid].map((ranks) => at(ranks, k))), median(searchMs).toFixed(2)]); // prettier-ignore
  }
  if (outcomes.length > 0) printTable(rows);
  return outcomes;
}

/** Prints by how much the hybrid search is above its parts, and adds it to the figures. */
function compare(label: string, name: string, outcomes: readonly Outcome[]): void {
  for (const k of [10, 20]) {
    for (const part of ['bm25', 'vector'] as const) {
      const { mean, low, high } = compareAt(outcomes, part, k);
      console.log(`${label} (${name}) above ${part} at ${k}: ${mean.toFixed(4)} (95 %: ${low.toFixed(4)} … ${high.toFixed(4)})`); // prettier-ignore
      const suffix = `${k === 10 ? '' : '_at20'}${name === 'encoder' ? '' : '_static'}`;
      figures[`${label}_vs_${part}${suffix}`] = Number(mean.toFixed(4));
      figures[`${label}_vs_${part}${suffix}_low`] = Number(low.toFixed(4));
    }
  }
}

/** Ranks of the evidence of follow-up questions with the conversation before them, and without it. */
async function measureFollowUps(embedder: Embedder, set: RecallSet): Promise<readonly [number[], number[]]> {
  return withMemory(embedder, async (memory) => {
    const rank = await fill(memory, embedder, set);
    const ranks = [[], []] as [number[], number[]];
    for (const { text, turns = [], evidence } of set.questions) {
      ranks[0].push(rank((await memory.search(TENANT, { text, turns: [...turns], k: K })).results, evidence));
      ranks[1].push(rank((await memory.search(TENANT, { text, k: K })).results, evidence));
    }
    return ranks;
  });
}

/** Ranks of the evidence of questions that need two texts: with steps to records that share a name, and without. */
async function measureTwoHops(embedder: Embedder, set: RecallSet): Promise<readonly [number[], number[]]> {
  return withMemory(embedder, async (memory) => {
    const rank = await fill(memory, embedder, set);
    const ranks = [[], []] as [number[], number[]];
    for (const { text, evidence } of set.questions) {
      for (const [i, expandHops] of [1, 0].entries()) {
        ranks[i]!.push(rank((await memory.search(TENANT, { text, k: K, expandHops })).results, evidence));
      }
    }
    return ranks;
  });
}

/** Which documents are among the first 10 results for a sentence that was taken out of them, by size. */
async function measureDocuments(embedder: Embedder): Promise<Record<string, number>> {
  const documents = readDocuments(wikitext, values.quick ? [1, 10, 50] : [1, 10, 50, 200]);
  return withMemory(embedder, async (memory) => {
    const ids: string[] = [];
    for (const { name, text } of documents) {
      ids.push((await memory.documents.add(TENANT, { name, content: text })).id);
    }
    const found = new Map<number, number[]>();
    for (const [i, { sizeKb, questions }] of documents.entries()) {
      const hits = found.get(sizeKb) ?? [];
      for (const text of questions) {
        const { results } = await memory.search(TENANT, { text, k: 10 });
        hits.push(results.some(({ record }) => record.fields['documentId'] === ids[i]) ? 1 : 0);
      }
      found.set(sizeKb, hits);
    }
    const mean = (hits: readonly number[]): number => hits.reduce((sum, hit) => sum + hit, 0) / hits.length;
    return Object.fromEntries([...found].map(([size, hits]) => [size, mean(hits)]));
  });
}

/** Of sentences that it has not seen. */
async function medianEmbedMs(): Promise<number> {
  const times: number[] = [];
  for (const { text } of [...sets, ...heldOutSets].flatMap(({ questions }) => questions).slice(0, 50)) {
    const startMs = performance.now();
    await encoder.embed(`${text} ${startMs}`);
    times.push(performance.now() - startMs);
  }
  return median(times);
}

const encoder = openModelEmbedder(await findEncoder());
const table = existsSync(stories) ? openTableEmbedder(stories) : null;
const embedders = [withCache('encoder', encoder), ...(table === null ? [] : [withCache('static', table)])];
for (const [i, embedder] of embedders.entries()) {
  const name = i === 0 ? 'encoder' : 'static';
  const outcomes = await measureAll(embedder, name, sets);
  const heldOut = await measureAll(embedder, `${name}, held out`, heldOutSets);
  const followUps = [];
  const followUpRows = [['follow-ups', 'questions', 'alone @10', 'with turns @10', 'alone @20', 'with turns @20']];
  for (const set of followUpSets) {
    log(`${name}: ${set.name}, ${set.texts.length} texts …`);
    const ranks = await measureFollowUps(embedder, set);
    embedder.save();
    followUps.push(ranks);
    followUpRows.push([set.name, String(set.questions.length), ...[10, 20].flatMap((k) => [at(ranks[1], k), at(ranks[0], k)])]); // prettier-ignore
  }
  if (followUps.length > 0) printTable(followUpRows);
  const twoHops = [];
  const twoHopRows = [['two hops', 'questions', 'no steps @10', 'a step @10', 'no steps @20', 'a step @20']];
  for (const set of twoHopSets) {
    log(`${name}: ${set.name}, ${set.texts.length} texts …`);
    const ranks = await measureTwoHops(embedder, set);
    embedder.save();
    twoHops.push({ label: `two_hop_gain${set.name.endsWith('held out') ? '_held_out' : ''}`, ranks });
    twoHopRows.push([set.name, String(set.questions.length), ...[10, 20].flatMap((k) => [at(ranks[1], k), at(ranks[0], k)])]); // prettier-ignore
  }
  if (twoHops.length > 0) printTable(twoHopRows);
  const unrelated = outcomes.map((outcome) => [outcome.unrelated, outcome.hybrid] as const);
  for (const [label, pairs] of [
    ['followup_gain', followUps],
    ['unrelated_turns', unrelated],
    ...twoHops.map(({ label, ranks }) => [label, [ranks]] as const),
  ] as const) {
    if (pairs.length === 0) continue;
    const { mean, low, high } = compareRanks(pairs, 10);
    console.log(`${label} (${name}) at 10: ${mean.toFixed(4)} (95 %: ${low.toFixed(4)} … ${high.toFixed(4)})`);
    figures[`${label}${i === 0 ? '' : '_static'}`] = Number(mean.toFixed(4));
    figures[`${label}${i === 0 ? '' : '_static'}_low`] = Number(low.toFixed(4));
  }
  for (const [prefix, some] of [
    ['', outcomes],
    ['held_out_', heldOut],
  ] as const) {
    if (some.length > 0) compare(`${prefix}hybrid`, name, some);
  }
  for (const [j, { name: of }] of heldOutSets.entries()) compare(`held_out_${of}_hybrid`, name, [heldOut[j]!]);
  if (i > 0) continue;
  figures['embed_p50_ms'] = Number((await medianEmbedMs()).toFixed(2));
  if (outcomes.length === 0) continue;
  figures['documents_at10_by_kb'] = await measureDocuments(embedder);
  embedder.save();
}
await encoder.close();
await table?.close();
console.log(JSON.stringify(figures));
