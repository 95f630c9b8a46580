import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { claimOf, type GainTable, measureCrossFitted } from '../../learning/evaluation/cross-fitted-gain.ts';
import { measureOffPolicy, MIN_RATED } from '../../learning/evaluation/off-policy-gain.ts';
import { boundedFigure, meanOf } from '../../learning/evaluation/retrieval.ts';
import { routedTurns, toRatedRoute } from '../../learning/router-training/rated-routes.ts';
import type { RatedRoute } from '../../learning/router-training/train-router.ts';
import { contestantsOf, fitRouteEncoder, ROUTER_BUCKETS, type RouteExample } from '../../learning/router/index.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import { name, text, unit } from '../../memory/schemas/primitives.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import { openNodeMemory } from '../../node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { nameOption } from '../../runtime/name-option.ts';
import type { CommandContext } from '../command.ts';
import { explainLock } from '../memory/explain-lock.ts';
import { readPlace } from '../memory/local-client.ts';
import { conflictError, requiresError, usageError } from '../usage-error.ts';
import { MAX_TEXT, readBenchData, requireRows } from './read-data.ts';
import { collectFacts, noteFacts, readSeed, showFigure, showNumber } from './run-facts.ts';

const costs = z.strictObject({ costs: z.record(name, z.number().min(0)) });
const rated = z.strictObject({
  prompt: text(MAX_TEXT, 1),
  /** Quality of the answer of each candidate. */
  qualities: z.record(name, unit),
  /** Subject or conversation; never on both sides of a split. Default: the prompt. */
  group: name.optional(),
});
type RatedPrompt = z.infer<typeof rated>;

const NUM_SHUFFLES = 5;
/** Fewer leave nothing to train on after five folds with three inner ones. */
const MIN_PROMPTS = 30;
/** Rated requests read from a memory, the newest ones. */
const MAX_RATED = 5000;
const BASELINE = 'best blind mixture of candidates at equal cost';

/** Measures a router on rated prompts, or on the rated requests of the user's memory. */
export async function benchRouting(context: CommandContext): Promise<void> {
  const { values } = context;
  if (values['--from-memory'] === true) {
    if (values['--data'] !== undefined) throw conflictError('--data', '--from-memory');
    return benchMemoryRequests(context);
  }
  for (const flag of ['--memory', '--tenant'])
    if (values[flag] !== undefined) throw requiresError(flag, '--from-memory');
  return benchPrompts(context);
}

async function benchPrompts(context: CommandContext): Promise<void> {
  const { output } = context;
  const data = await readBenchData(context, 'routing', z.union([costs, rated]));
  const prompts = data.rows.filter((row): row is RatedPrompt => 'prompt' in row);
  const fromFile = Object.assign({}, ...data.rows.map((row) => ('costs' in row ? row.costs : {}))) as Record<string, number>; // prettier-ignore
  requireRows(prompts.length, MIN_PROMPTS, 'rated prompts');
  const names = candidatesIn(prompts);
  const price = costsOf(names, { ...fromFile, ...costFlags(context) });
  const encoder = fitRouteEncoder(prompts.map(requestOf), { numBuckets: ROUTER_BUCKETS });
  const examples = prompts.map((one): RouteExample => ({
    input: encoder.encode(requestOf(one)),
    outcomes: Float32Array.from(names, (candidate) => one.qualities[candidate]!),
    group: one.group ?? one.prompt,
  }));
  const contestants = contestantsOf({ numCandidates: names.length, numBuckets: ROUTER_BUCKETS, costs: price });
  const task = {
    title: 'routing',
    names,
    costs: price,
    contestants,
    numShuffles: NUM_SHUFFLES,
    seed: readSeed(context),
  };
  const progress = output.progress();
  let table: GainTable;
  try {
    table = measureCrossFitted(task, examples, examples.map(({ group }) => group), (label) =>
      progress.update({ label, doneBytes: 0, totalBytes: null }),
    ); // prettier-ignore
  } finally {
    progress.finish();
  }
  const fixed = table.fixed.map(({ name: candidate, cost }, i) => ({
    name: `always ${candidate}`,
    cost,
    quality: boundedFigure(examples.map(({ outcomes }) => outcomes[i]!)),
  }));
  const random = {
    name: 'random',
    cost: meanOf(price),
    quality: boundedFigure(examples.map(({ outcomes }) => meanOf(Array.from(outcomes)))),
  };
  const equalCost = table.atBudgets.map(({ share, cost, quality, blind, byCluster }) => ({
    share,
    cost,
    router: quality,
    blind,
    gain: { mean: quality - blind, ...byCluster },
  }));
  const [router] = table.rows;
  const control = table.controls[0]!;
  const claim = claimOf(table);
  const facts = collectFacts(context, 'routing', data);
  output.document({
    ...facts,
    baseline: BASELINE,
    policies: [...fixed, random],
    equalCost,
    area: { mean: router!.area, ...router!.byCluster, ofOracle: router!.ofOracle },
    control: { numShuffles: control.numShuffles, mean: control.mean, most: control.most, difference: { mean: control.difference, ...control.byCluster } }, // prettier-ignore
    routers: table.winners,
    ...claim,
  });
  output.table(
    ['POLICY', 'COST', 'QUALITY [95 %]'],
    [...cheapestAndBest(fixed), random].map((one) => [one.name, showNumber(one.cost), showFigure(one.quality)]),
  );
  output.lines('');
  output.table(
    ['AT EQUAL COST', 'ROUTER', 'BLIND MIXTURE', 'GAIN [95 %]'],
    equalCost.map(({ cost, router: quality, blind, gain }) => [showNumber(cost), showNumber(quality), showNumber(blind), showFigure(gain)]), // prettier-ignore
  );
  output.lines('');
  output.table(null, [
    ['mean gain over all budgets', showFigure({ mean: router!.area, ...router!.byCluster })],
    ['the same, trained on shuffled qualities', `${showNumber(control.mean)}, at most ${showNumber(control.most)}`],
    ['conclusion', `${claim.isClaimed ? 'the router gains' : 'no gain is shown'}: ${claim.why}`],
  ]);
  noteFacts(context, facts);
}

const requestOf = ({ prompt }: RatedPrompt) => ({ turns: routedTurns([prompt]) });

/** Names the fixed policies that are the usual choices. */
function cheapestAndBest<T extends { name: string; cost: number; quality: { mean: number } }>(
  fixed: readonly T[],
): T[] {
  const cheapest = fixed.reduce((a, b) => (b.cost < a.cost ? b : a));
  const best = fixed.reduce((a, b) => (b.quality.mean > a.quality.mean ? b : a));
  return fixed.map((one) => {
    const marks = [...(one === cheapest ? ['cheapest'] : []), ...(one === best ? ['best'] : [])];
    return marks.length === 0 ? one : { ...one, name: `${one.name} (${marks.join(', ')})` };
  });
}

/** All rows rate the same candidates: a missing quality would bias every comparison. */
function candidatesIn(prompts: readonly RatedPrompt[]): string[] {
  const names = Object.keys(prompts[0]!.qualities);
  if (names.length < 2)
    throw usageError(`rated prompts name ${names.length} candidates; at least 2 are required`, '--data');
  for (const [i, { qualities }] of prompts.entries()) {
    const missing = names.find((candidate) => !Object.hasOwn(qualities, candidate));
    const extra = Object.keys(qualities).find((candidate) => !names.includes(candidate));
    if (missing !== undefined) throw usageError(`rated prompt ${i + 1} has no quality of ${JSON.stringify(missing)}`, '--data'); // prettier-ignore
    if (extra !== undefined) throw usageError(`rated prompt ${i + 1} has a quality of ${JSON.stringify(extra)}, the first one does not`, '--data'); // prettier-ignore
  }
  return names;
}

const costFlags = ({ values }: CommandContext): Record<string, number> =>
  Object.fromEntries((values['--cost'] as (readonly [string, number])[] | undefined) ?? []);

function costsOf(names: readonly string[], given: Readonly<Record<string, number>>): number[] {
  const unknown = Object.keys(given).find((candidate) => !names.includes(candidate));
  if (unknown !== undefined) throw usageError(`cost of ${JSON.stringify(unknown)}, which is no candidate; candidates: ${names.join(', ')}`, '--cost'); // prettier-ignore
  const price = names.map((candidate) => {
    const cost = given[candidate];
    if (cost === undefined) throw usageError(`the cost of ${JSON.stringify(candidate)} is missing: --cost ${candidate}=1`, '--cost'); // prettier-ignore
    return cost;
  });
  if (new Set(price).size === 1) throw usageError(`all candidates cost ${price[0]}; a router at equal cost requires different costs`, '--cost'); // prettier-ignore
  return price;
}

/** Reads the user's rated requests; nothing is written. */
async function readRated(context: CommandContext): Promise<readonly Trajectory[]> {
  const tenant = nameOption(context.values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = readPlace(context, false);
  const memory = await openNodeMemory({
    ...(place === undefined ? {} : { place }),
    modelPath: null,
    whenUnreachable: 'fail',
    report: (message) => context.output.note(message),
  }).catch((error: unknown) => {
    throw explainLock(error);
  });
  try {
    const conditions = [{ field: 'quality', is: '>=', value: 0 }] as const;
    return await createTrajectories(memory.store, memory.services).find(tenant, { conditions, order: 'newest', limit: MAX_RATED }); // prettier-ignore
  } finally {
    await memory.close();
  }
}

async function benchMemoryRequests(context: CommandContext): Promise<void> {
  const { output } = context;
  const requests = await readRated(context);
  const candidateOf = ({ route, model }: Trajectory): string => route?.candidate ?? model;
  const names = [...new Set(requests.map(candidateOf))].sort();
  if (requests.length < MIN_RATED || names.length < 2) {
    throw new RuvLLMError(
      'invalid_option',
      `the memory has ${requests.length} rated requests of ${names.length} candidates; at least ${MIN_RATED} of 2 are required`,
      { data: { numRequests: requests.length, numCandidates: names.length } },
    );
  }
  const price = costsOf(names, costFlags(context));
  const routes = requests
    .toReversed()
    .map((one) => toRatedRoute(one, () => names.indexOf(candidateOf(one))))
    .filter((one): one is RatedRoute => one !== null);
  const table = measureOffPolicy(routes, { names, costs: price, seed: readSeed(context) });
  // Only ids: the texts are the user's.
  const sha256 = createHash('sha256').update(JSON.stringify(requests.map(({ requestId }) => requestId))).digest('hex'); // prettier-ignore
  const facts = collectFacts(context, 'routing', { name: 'memory', sha256, rows: requests });
  output.document({ ...facts, baseline: BASELINE, isEstimated: true, ...table });
  const rows = [table.router, ...table.fixed, table.blind];
  output.table(
    ['POLICY', 'COST', 'ESTIMATED QUALITY', 'ROUTER MINUS IT [95 %]'],
    rows.map(({ name: policy, cost, quality }) => [
      policy === 'blind mixture' ? 'blind mixture at equal cost' : policy,
      showNumber(cost),
      showNumber(quality),
      table.gains[policy] === undefined ? '' : showFigure(table.gains[policy]),
    ]),
  );
  output.note('estimated: each request was answered by one candidate, and the others are inferred (doubly robust)');
  noteFacts(context, facts);
}
