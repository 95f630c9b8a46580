import { createRandom } from '../../src/core/random.ts';
import { bootstrap } from '../../src/learning/evaluation/bootstrap.ts';
import { hasRoutingSuite, readBanking } from '../support/learn/routing-data.ts';
import { printTable } from '../support/report.ts';
import { deskOf, DESKS, judge, type Question, rateAll, split, trainAlone } from './federation.ts';
import { createFederationNode, exchange, type RatedText } from './support/federation-node.ts';

/** Of each bundle; the first is without noise. */
const EPSILONS = [null, 8, 4, 1] as const;
const DELTA = 1e-6;
const NUM_JUDGED = 2;
const NUM_RESAMPLES = 1000;

async function federate(
  parts: readonly (readonly RatedText[])[],
  heldOut: readonly Question[],
  epsilon: number | null,
): Promise<number[]> {
  const nodes = parts.map(() => createFederationNode(DESKS));
  for (const [i, node] of nodes.entries()) {
    await node.rate(parts[i]!);
    if (epsilon !== null) await node.federation.setPrivacy('bench', { epsilon, delta: DELTA, epsilonPerPush: epsilon });
  }
  await exchange(nodes);
  const rows: Uint8Array[] = [];
  for (const node of nodes.slice(0, NUM_JUDGED)) rows.push(await judge(node, heldOut));
  return Array.from(rows[0]!, (_, i) => rows.reduce((sum, row) => sum + row[i]!, 0) / rows.length);
}

/** How many questions reach the right desk if the bundles of three nodes are noised; without noise, and without bundles. */
export async function measure({ isDevelopment = false } = {}): Promise<Record<string, number>> {
  if (!hasRoutingSuite()) {
    console.error('federation-privacy: not measured, because the routing suite is not beside the checkout');
    return {};
  }
  const random = createRandom(isDevelopment ? 200 : 300);
  const questions = readBanking().map(({ text, intent }) => ({ text, intent, desk: deskOf(intent) }));
  const { parts, heldOut } = split(questions, random);
  const rated = parts.map((part) => rateAll(part, random));
  const alone = [...(await trainAlone(rated[0]!, heldOut)), ...(await trainAlone(rated[1]!, heldOut))];
  const base = heldOut.map((_, i) => (alone[i]! + alone[heldOut.length + i]!) / 2);
  const units = heldOut.map((_, i) => String(i));
  const figures: Record<string, number> = {};
  const table = [['bundles', 'right desk', 'gain over alone', '95 %']];
  const meanOf = (values: readonly number[], counts?: Float64Array): number => values.reduce((sum, value, i) => sum + value * (counts?.[i] ?? 1), 0) / (counts?.reduce((sum, count) => sum + count, 0) ?? values.length); // prettier-ignore
  figures['federation_private_alone'] = meanOf(base);
  table.push(['none', meanOf(base).toFixed(4), '–', '–']);
  for (const epsilon of EPSILONS) {
    console.error(`epsilon ${epsilon ?? 'none'}`);
    const values = await federate(rated, heldOut, epsilon);
    const gain = (counts?: Float64Array): number => meanOf(values, counts) - meanOf(base, counts);
    const { low, high } = bootstrap(units, gain, NUM_RESAMPLES, 1);
    const key = `federation_private_${epsilon === null ? 'no_noise' : `epsilon_${epsilon}`}`;
    Object.assign(figures, { [key]: meanOf(values), [`${key}_gain`]: gain(), [`${key}_gain_low`]: low, [`${key}_gain_high`]: high }); // prettier-ignore
    table.push([epsilon === null ? 'without noise' : `epsilon ${epsilon}`, meanOf(values).toFixed(4), gain().toFixed(4), `${low.toFixed(4)} to ${high.toFixed(4)}`]); // prettier-ignore
  }
  printTable(table);
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Number(value.toFixed(4))]));
}
