import { createRandom } from '../../src/core/random.ts';
import { bootstrap } from '../../src/learning/evaluation/bootstrap.ts';
import { hasRoutingSuite, readBanking } from '../support/learn/routing-data.ts';
import { printTable } from '../support/report.ts';
import { measureAdapters } from './federation-adapters.ts';
import { createFederationNode, exchange, type FederationNode, type RatedText } from './support/federation-node.ts';

/** Desks of a bank, each for some of the 77 intents of its customers. */
export const DESKS = ['cards', 'transfers', 'top-ups', 'accounts'] as const;
const NUM_NODES = 3;
const NUM_JUDGED = 2;
const NUM_RATINGS = 400;
const NUM_HELD_OUT = 1500;
const NUM_SPLITS = 2;
/** Ratings of users are not all right. */
const NOISE = 0.05;
const NUM_RESAMPLES = 1000;

export function deskOf(intent: string): number {
  if (/top_up|top-up/i.test(intent)) return 2;
  if (/transfer|beneficiary|receiving_money|payment/i.test(intent)) return 1;
  return /card|pin|atm|cash/i.test(intent) ? 0 : 3;
}

export interface Question {
  readonly text: string;
  readonly desk: number;
  readonly intent: string;
}

type Random = ReturnType<typeof createRandom>;

function shuffle<T>(items: readonly T[], random: Random): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

/** A random desk answers, and its user says whether it was the right one. */
export function rateAll(questions: readonly Question[], random: Random): RatedText[] {
  return questions.map(({ text, desk: right }) => {
    const desk = Math.floor(random.next() * DESKS.length);
    const isRight = (desk === right) !== random.next() < NOISE;
    return { text, desk, quality: +isRight };
  });
}

function shuffleQualities(ratings: readonly RatedText[], random: Random): RatedText[] {
  const qualities = shuffle(ratings.map(({ quality }) => quality), random); // prettier-ignore
  return ratings.map((one, i) => ({ ...one, quality: qualities[i]! }));
}

/** Lies of a node: all ratings turned around, or one desk praised for everything. */
const LIES: Readonly<Record<string, (one: RatedText) => RatedText>> = {
  inverted: (one) => ({ ...one, quality: 1 - one.quality }),
  promoted: (one) => ({ ...one, quality: +(one.desk === 3) }),
};

/** Whether each held-out question goes to the right desk. */
export async function judge(node: FederationNode, heldOut: readonly Question[]): Promise<Uint8Array> {
  const { router, reason } = await node.train();
  console.error(`  ${reason.slice(0, 400)}`);
  return Uint8Array.from(heldOut, ({ text, desk }) => {
    const chosen = router === null ? 0 : router.policy.decide(router.encoder.encode({ turns: [text] })).candidate;
    return +(chosen === desk);
  });
}

/** Nodes that exchanged their bundles; the figures are those of the first two: the third may lie. */
async function federate(parts: readonly (readonly RatedText[])[], heldOut: readonly Question[]): Promise<Uint8Array[]> {
  const nodes = parts.map(() => createFederationNode(DESKS));
  for (const [i, node] of nodes.entries()) await node.rate(parts[i]!);
  await exchange(nodes);
  const rows: Uint8Array[] = [];
  for (const node of nodes.slice(0, NUM_JUDGED)) rows.push(await judge(node, heldOut));
  return rows;
}

export async function trainAlone(ratings: readonly RatedText[], heldOut: readonly Question[]): Promise<Uint8Array> {
  const node = createFederationNode(DESKS);
  await node.rate(ratings);
  return judge(node, heldOut);
}

/** Each node has half of its questions from its own third of the intents. */
export function split(questions: readonly Question[], random: Random): { parts: Question[][]; heldOut: Question[] } {
  const all = shuffle(questions, random);
  const heldOut = all.splice(0, NUM_HELD_OUT);
  const intents = shuffle([...new Set(questions.map(({ intent }) => intent))], random);
  const parts = Array.from({ length: NUM_NODES }, (_, node) => {
    const isOwn = ({ intent }: Question): boolean => intents.indexOf(intent) % NUM_NODES === node;
    const take = (count: number, is: (one: Question) => boolean): Question[] => {
      const taken: Question[] = [];
      for (let i = all.length - 1; i >= 0 && taken.length < count; i--) if (is(all[i]!)) taken.push(...all.splice(i, 1)); // prettier-ignore
      return taken;
    };
    return shuffle([...take(NUM_RATINGS / 2, isOwn), ...take(NUM_RATINGS / 2, () => true)], random);
  });
  return { parts, heldOut };
}

type Figures = Record<string, number>;

/** Three nodes against one with all ratings, and against one liar among the three. */
export async function measure({ isDevelopment = false } = {}): Promise<Figures> {
  const adapters = await measureAdapters(isDevelopment);
  if (!hasRoutingSuite()) {
    console.error('federation: not measured, because the routing suite is not beside the checkout');
    return adapters;
  }
  const questions = readBanking().map(({ text, intent }) => ({ text, intent, desk: deskOf(intent) }));
  /** By setup, whether each held-out question of each split went right; of several nodes, the mean. */
  const rows = new Map<string, number[]>();
  const note = (name: string, ...nodes: readonly Uint8Array[]): void => {
    const means = Array.from(nodes[0]!, (_, i) => nodes.reduce((sum, node) => sum + node[i]!, 0) / nodes.length);
    rows.set(name, [...(rows.get(name) ?? []), ...means]);
  };
  for (let at = 0; at < (isDevelopment ? 1 : NUM_SPLITS); at++) {
    const random = createRandom((isDevelopment ? 200 : 300) + at);
    const { parts, heldOut } = split(questions, random);
    const rated = parts.map((part) => rateAll(part, random));
    console.error(`split ${at + 1}: one node with all ratings, each alone, federated`);
    note('all ratings', await trainAlone(shuffle(rated.flat(), random), heldOut));
    note('alone', await trainAlone(rated[0]!, heldOut));
    note('federated', ...(await federate(rated, heldOut)));
    // What a liar must cost at least: nobody has its ratings.
    note('two nodes', ...(await federate(rated.slice(0, NUM_JUDGED), heldOut)));
    // The negative control: ratings that say nothing about their requests.
    note(
      'shuffled',
      ...(await federate(
        rated.map((part) => shuffleQualities(part, random)),
        heldOut,
      )),
    );
    for (const [name, lie] of Object.entries(LIES)) {
      console.error(`split ${at + 1}: the third node lies (${name})`);
      const poisoned = [rated[0]!, rated[1]!, rated[2]!.map(lie)];
      note(`federated, ${name}`, ...(await federate(poisoned, heldOut)));
      // The control: what everybody says counts alike, as in a plain mean.
      note(`plain mean, ${name}`, await trainAlone(shuffle(poisoned.flat(), random), heldOut));
    }
  }
  const units = Array.from(rows.get('federated')!, (_, i) => String(i));
  const meanOf = (name: string, counts?: Float64Array): number => {
    const values = rows.get(name)!;
    const total = counts?.reduce((sum, count) => sum + count, 0) ?? values.length;
    return values.reduce((sum, value, i) => sum + value * (counts?.[i] ?? 1), 0) / total;
  };
  const figures: Figures = {};
  const table = [['', 'right desk', 'relative loss', '95 %']];
  const lossOf = (key: string, name: string, of: string): void => {
    const loss = (counts?: Float64Array): number => 1 - meanOf(name, counts) / meanOf(of, counts);
    const { low, high } = bootstrap(units, loss, NUM_RESAMPLES, 1);
    figures[key] = Number(loss().toFixed(4));
    figures[`${key}_ci_low`] = Number(low.toFixed(4));
    figures[`${key}_ci_high`] = Number(high.toFixed(4));
    table.push([`${name}, against ${of}`, meanOf(name).toFixed(4), figures[key].toFixed(4), `${low.toFixed(4)} to ${high.toFixed(4)}`]); // prettier-ignore
  };
  table.push(['all ratings', meanOf('all ratings').toFixed(4), '–', '–']);
  figures['federation_all'] = Number(meanOf('all ratings').toFixed(4));
  figures['federation_accuracy'] = Number(meanOf('federated').toFixed(4));
  lossOf('federation_gap', 'federated', 'all ratings');
  lossOf('federation_gap_alone', 'alone', 'all ratings');
  lossOf('federation_gap_two_nodes', 'two nodes', 'all ratings');
  figures['federation_shuffled'] = Number(meanOf('shuffled').toFixed(4));
  table.push(['shuffled ratings', meanOf('shuffled').toFixed(4), '–', '–']);
  for (const name of Object.keys(LIES)) {
    lossOf(`poison_loss_${name}`, `federated, ${name}`, 'federated');
    lossOf(`poison_harm_${name}`, `federated, ${name}`, 'two nodes');
    lossOf(`poison_loss_plain_mean_${name}`, `plain mean, ${name}`, 'all ratings');
  }
  // The worse of both lies.
  for (const key of ['poison_loss', 'poison_harm']) {
    const worst = Object.keys(LIES).reduce((a, b) => (figures[`${key}_${b}`]! > figures[`${key}_${a}`]! ? b : a));
    for (const end of ['', '_ci_low', '_ci_high']) figures[`${key}${end}`] = figures[`${key}_${worst}${end}`]!;
  }
  printTable(table);
  return { ...figures, ...adapters };
}
