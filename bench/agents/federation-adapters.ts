import type { LowRankFactors } from '../../src/adapters/types.ts';
import { createRandom } from '../../src/core/random.ts';
import { bootstrap } from '../../src/learning/evaluation/bootstrap.ts';
import { printTable } from '../support/report.ts';
import { importBuilt } from '../support/dist.ts';
import { createAdapterNode, judge, type Lesson, parametersOf } from './support/adapter-node.ts';

const { mergeAdapters } = await importBuilt<typeof import('../../src/adapters/merge/merge-adapters.ts')>('adapters/merge/merge-adapters'); // prettier-ignore

/** Each has its own third of the topics in half of its requests. */
const SPECIALISTS = { counts: [100, 100, 100], ownShare: 0.5 };
/** A node with few requests, and two with many about the same topics. */
const NEWCOMER = { counts: [60, 100, 100], ownShare: 0 };
type Setup = typeof SPECIALISTS;
const NUM_HELD_OUT = 400;
const NUM_SPLITS = 5;
/** The nodes of a split have seeds after that of the split. */
const SEEDS_PER_SPLIT = 10;
const NUM_RESAMPLES = 1000;
const TOPICS = 'abcdefghijkl';
type Random = ReturnType<typeof createRandom>;
type Factors = readonly LowRankFactors[];

const LIES: Readonly<Record<string, (factors: Factors) => Factors>> = {
  inverted: (factors) => factors.map((one) => ({ ...one, scale: -one.scale })),
  scaled: (factors) => factors.map((one) => ({ ...one, scale: -100 * one.scale })),
};

/** A question about a topic, among noise; each of twelve topics has one of four answers. */
function ask(random: Random, topics: string): { question: string; right: number } {
  const topic = topics[Math.floor(random.next() * topics.length)]!;
  const noise = Array.from({ length: 2 }, () => String.fromCharCode(109 + Math.floor(random.next() * 14))).join('');
  return { question: `${noise}${topic}?`, right: TOPICS.indexOf(topic) % 4 };
}

function lessonsOf(node: number, { counts, ownShare }: Setup, random: Random): Lesson[] {
  const own = TOPICS.slice(node * 4, node * 4 + 4);
  return Array.from({ length: counts[node]! }, () => ask(random, random.next() < ownShare ? own : TOPICS));
}

function shuffleAnswers(lessons: readonly Lesson[], random: Random): Lesson[] {
  const answers = lessons.map(({ right }) => right);
  for (let i = answers.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [answers[i], answers[j]] = [answers[j]!, answers[i]!];
  }
  return lessons.map((one, i) => ({ ...one, right: answers[i]! }));
}

async function trained(lessons: readonly Lesson[], seed: number) {
  const node = createAdapterNode(seed);
  await node.teach(lessons);
  console.error(`  ${await node.train()}`);
  return node;
}

/** Adapters of three nodes against one with all requests, and with one liar among the three. */
export async function measureAdapters(isDevelopment: boolean): Promise<Record<string, number>> {
  const first = isDevelopment ? 500 : 600;
  const seeds = Array.from({ length: isDevelopment ? 1 : NUM_SPLITS }, (_, i) => first + i * SEEDS_PER_SPLIT);
  const specialists = await measureSplits(SPECIALISTS, seeds, [0, 1]);
  const newcomer = await measureSplits(NEWCOMER, seeds, [0]);
  return { ...showFigures('adapters of specialists', 'adapter', specialists), ...showFigures('adapters of a newcomer', 'newcomer', newcomer) }; // prettier-ignore
}

/** The rows of all splits, one after the other. */
async function measureSplits(
  setup: Setup,
  seeds: readonly number[],
  judged: readonly number[],
): Promise<Map<string, number[]>> {
  const all = new Map<string, number[]>();
  for (const seed of seeds) {
    const rows = await measureSetup(setup, seed, judged);
    for (const [name, values] of rows) all.set(name, [...(all.get(name) ?? []), ...values]);
    const shares = [...rows].map(([name, values]) => `${name} ${(values.reduce((sum, one) => sum + one, 0) / values.length).toFixed(3)}`); // prettier-ignore
    console.error(`  seed ${seed}: ${shares.join(', ')}`);
  }
  return all;
}

/** By row, whether each held-out question went right, as the mean of the judged nodes. */
async function measureSetup(setup: Setup, seed: number, judged: readonly number[]): Promise<Map<string, number[]>> {
  const rows = new Map<string, number[]>();
  const note = (name: string, nodes: readonly Uint8Array[]): void => {
    const means = Array.from(nodes[0]!, (_, i) => nodes.reduce((sum, node) => sum + node[i]!, 0) / nodes.length);
    rows.set(name, means);
  };
  const random = createRandom(seed);
  const heldOut = Array.from({ length: NUM_HELD_OUT }, () => ask(random, TOPICS));
  const parts = setup.counts.map((_, node) => lessonsOf(node, setup, random));
  console.error(`adapters, ${setup.counts.join(', ')} requests: one node with all, then three`);
  note('all requests', [await judge(await (await trained(parts.flat(), seed)).served(), heldOut)]);
  const nodes = [];
  for (const [i, part] of parts.entries()) nodes.push(await trained(part, seed + 1 + i));
  const alone: Uint8Array[] = [];
  for (const i of judged) alone.push(await judge(await nodes[i]!.served(), heldOut));
  note('alone', alone);
  const adapters: (Factors | null)[] = [];
  for (const node of nodes) adapters.push((await node.adapter())?.factors ?? null);
  // Without the last node: a liar costs at least what that node knows. The negative control: the last node learned the same answers, each to another question.
  const confused = await trained(shuffleAnswers(parts.at(-1)!, random), seed + nodes.length);
  const shuffled = (await confused.adapter())?.factors ?? null;
  const last = adapters.at(-1) ?? null;
  const lies = Object.entries(LIES).map(([name, lie]): [string, Factors | null] => [name, last && lie(last)]);
  for (const [name, third] of [['', last], ['none', null], ...lies, ['shuffled', shuffled]] as const) {
    const sent = [...adapters.slice(0, -1), third];
    const after: Uint8Array[] = [];
    for (const i of judged) {
      const peers = sent.flatMap((factors, peer) => (peer === i || factors === null ? [] : [{ name: `node-${peer + 1}`, factors }])); // prettier-ignore
      const right = await nodes[i]!.merge(peers, async (served, reason) => {
        console.error(`  ${name || 'honest'}: ${reason}`);
        return judge(served, heldOut);
      });
      after.push(right);
    }
    note(name === '' ? 'federated' : `federated, ${name}`, after);
    // The control: the plain mean of ΔW, which serves without a gate.
    const inputs = sent.flatMap((factors) => (factors === null ? [] : [{ adapter: { architecture: 'llama', contentHash: '', factors } }])); // prettier-ignore
    const { adapter } = await mergeAdapters(inputs, { method: 'linear', rank: 4 });
    note(`plain mean${name === '' ? '' : `, ${name}`}`, [await judge(await parametersOf(adapter.factors), heldOut)]);
  }
  return rows;
}

function showFigures(
  title: string,
  prefix: string,
  rows: ReadonlyMap<string, readonly number[]>,
): Record<string, number> {
  const units = Array.from(rows.get('federated')!, (_, i) => String(i));
  const meanOf = (name: string, counts?: Float64Array): number => {
    const values = rows.get(name)!;
    const total = counts?.reduce((sum, count) => sum + count, 0) ?? values.length;
    return values.reduce((sum, value, i) => sum + value * (counts?.[i] ?? 1), 0) / total;
  };
  const figures: Record<string, number> = {};
  const table = [[title, 'right answer', 'relative loss', '95 %']];
  for (const [name, of, key] of [
    ['federated', 'all requests', `${prefix}_federation_gap`],
    ['plain mean', 'all requests', `${prefix}_plain_mean_gap`],
    ['alone', 'all requests', `${prefix}_federation_gap_alone`],
    ['federated, none', 'all requests', `${prefix}_federation_gap_two_nodes`],
    ...[...Object.keys(LIES), 'shuffled'].flatMap((lie) => [
      [`federated, ${lie}`, 'federated, none', `${prefix}_poison_harm_${lie}`],
      [`federated, ${lie}`, 'federated', `${prefix}_poison_loss_${lie}`],
      [`plain mean, ${lie}`, 'federated', `${prefix}_poison_loss_plain_mean_${lie}`],
    ]),
  ] as const) {
    const loss = (counts?: Float64Array): number => 1 - meanOf(name!, counts) / meanOf(of!, counts);
    const { low, high } = bootstrap(units, loss, NUM_RESAMPLES, 1);
    for (const [end, value] of [['', loss()], ['_ci_low', low], ['_ci_high', high]] as const) figures[`${key!}${end}`] = Number(value.toFixed(4)); // prettier-ignore
    table.push([`${name!}, against ${of!}`, meanOf(name!).toFixed(4), loss().toFixed(4), `${low.toFixed(4)} to ${high.toFixed(4)}`]); // prettier-ignore
  }
  figures[`${prefix}_federation_all`] = Number(meanOf('all requests').toFixed(4));
  table.push(['all requests', meanOf('all requests').toFixed(4), '–', '–']);
  printTable(table);
  return figures;
}
