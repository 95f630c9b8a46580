import type { LowRankFactors } from '../../adapters/types.ts';
import { decidePromotion } from '../gate/gate.ts';
import { hasPeers, newestIds } from '../federation/peer-id.ts';
import type { PeerDelta } from '../federation/federation.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { type ConsolidateContext, type ConsolidateReport, gather, layersOf, refuseStopped } from './consolidate.ts';
import { examineSets } from './examine-sets.ts';
import { acceptHarmless, chooseMerge, type OwnVote } from './choose-merge.ts';
import { callJudges, goAsFar, judge } from './judges.ts';
import { adapterLine, getLearnedAdapter, type LearnedAdapter, lessonsOf, planOf, putLearnedAdapter } from './learned-adapter.ts'; // prettier-ignore
import type { EwcSettings } from './track-tasks.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { AdapterPlan, LearningModel, LearningWork } from './types.ts';

export interface MergeRun {
  readonly tenant: string;
  readonly model: LearningModel;
  readonly deltas: readonly PeerDelta[];
  readonly limitMs: number;
  readonly signal: AbortSignal | null;
}

/** An adapter that this node trained without peers. */
interface OwnVersion {
  readonly version: LearnedVersion;
  readonly adapter: LearnedAdapter;
  readonly factors: readonly LowRankFactors[];
}

const MAX_HISTORY = 1000;
const FISHER_SHARE = 1 / 4;

/** The newest accepted version that learned from no peer and whose weights exist; null: there is none. */
export async function ownVersion(
  { versions, blobs, work }: { versions: VersionLog; blobs: FloatBlobs; work: Pick<LearningWork, 'factorsOf'> },
  tenant: string,
  model: LearningModel,
): Promise<OwnVersion | null> {
  for (const version of await versions.history(tenant, adapterLine(model.id), MAX_HISTORY)) {
    if (!version.isAccepted || hasPeers(version.learnedFrom)) continue;
    const adapter = await getLearnedAdapter(blobs, tenant, version).catch(() => null);
    if (adapter === null) continue;
    const { rank, numLayers, parameters } = adapter;
    return { version, adapter, factors: await work.factorsOf(planOf(model, rank, numLayers), parameters) };
  }
  return null;
}

/** Merges the adapters of peers with the own one, evaluates the result on own held-out requests, and writes the version. */
export async function mergePeers(context: ConsolidateContext, run: MergeRun): Promise<ConsolidateReport> {
  const { versions, blobs, work, options, services } = context;
  const { tenant, model, deltas, limitMs, signal } = run;
  const startMs = services.now();
  const sets = await gather(context, run);
  const report = (version: LearnedVersion | null, reason: string, isUnfinished = false): ConsolidateReport => ({
    version,
    reason,
    numTrained: 0,
    numHeldOut: sets.heldOut.length,
    numElsewhere: sets.elsewhere.length,
    elapsedMs: services.now() - startMs,
    isUnfinished,
    ewc: null,
  });
  const line = adapterLine(model.id);
  const own = await ownVersion(context, tenant, model);
  const numVotes = deltas.length + (own === null ? 0 : 1);
  // One alone could be of any length, and nothing would contradict it.
  if (numVotes < 2)
    return report(null, `${deltas.length} adapters of peers and ${own === null ? 'no' : 'an'} own one; two are needed`);
  const active = await versions.active(tenant, line);
  const serving = active === null ? null : await getLearnedAdapter(blobs, tenant, active);
  const before = serving ?? own?.adapter ?? null;
  const plan = planOf(model, before?.rank ?? options.rank, before?.numLayers ?? layersOf(model, options));
  const stop = (): void => void work.cancel();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const gathered = { ...sets, earlier: [], avoid: [], numExamined: 0 };
    const ready = plan.numLayers > 0 ? gathered : await examineSets(context, { tenant, model, limitMs, signal }, gathered, startMs); // prettier-ignore
    if ('reason' in ready) return report(null, ready.reason, ready.isUnfinished);
    const judges = await callJudges(work, plan, ready, serving?.parameters ?? null, limitMs);
    const votes = { own: own && voteOf(model, own), deltas, train: ready.train, limitMs };
    const { parameters: whole, norms, bound, keptEnergy, used, trained } = await chooseMerge(work, plan, votes);
    const { parameters, share } = await goAsFar(work, plan, judges.tuning, null, whole);
    const heldOut = await judge(work, plan, judges.heldOut, parameters);
    const elsewhere = await judge(work, plan, judges.elsewhere, parameters);
    const gate = decidePromotion(heldOut, elsewhere);
    const { isAccepted, reason, metrics } = share === 1 ? acceptHarmless(gate, { heldOut, elsewhere, trained }) : gate;
    refuseStopped(signal);
    const peers = used.map(({ peer }) => peer);
    const leftOut = deltas.filter((one) => !used.includes(one)).map(({ peer }) => peer);
    const without = leftOut.length === 0 ? '' : `, without ${leftOut.join(', ')}, with which the loss of own training examples is higher`; // prettier-ignore
    const numClipped = norms.filter((norm) => norm > bound).length;
    const who = `${own === null ? '' : 'the own adapter and '}those of ${peers.join(', ')}`;
    const common = {
      line,
      loop: 'operator',
      isAccepted,
      reason: `merged ${who}, ${numClipped} of them clipped to norm ${bound.toPrecision(3)}${without}: ${reason}`.slice(
        0,
        2048,
      ),
      metrics: { ...metrics, share, peers: peers.length, clipped: numClipped, norm_bound: bound, kept_energy: keptEnergy }, // prettier-ignore
    } as const;
    const lessons = own === null ? '' : (lessonsOf(own.version) ?? '');
    if (!isAccepted) {
      const refused = { blobs: {}, contents: { lessons, peers }, learnedFrom: [] };
      const version = await versions.add(tenant, { ...common, ...refused });
      return report(version, version.reason);
    }
    const settings = await context.ewcSettings(tenant);
    const fisher = await fisherOf(context, { plan, examples: ready.train, settings, limitMs }, parameters);
    refuseStopped(signal);
    // Other factors span the result: anchors of finished tasks, which are factors, would pull it elsewhere.
    const { lambda = settings.lambda, stream = null } = before?.ewc ?? {};
    const ewc = { lambda, tasks: [], boundariesMs: [], stream, fisher };
    const kept = await putLearnedAdapter(blobs, tenant, { parameters, rank: plan.rank, numLayers: plan.numLayers, ewc, lessons, peers }); // prettier-ignore
    const learnedFrom = newestIds([...(own?.version.learnedFrom ?? []), ...used.map(({ id }) => id)], 50_000);
    const version = await versions.add(tenant, { ...common, ...kept, learnedFrom });
    return report(version, version.reason);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

const voteOf = (model: LearningModel, { adapter: { rank, numLayers, parameters }, factors }: OwnVersion): OwnVote => ({
  plan: planOf(model, rank, numLayers),
  parameters,
  factors,
});

interface FisherInput {
  readonly plan: AdapterPlan;
  readonly examples: readonly TrainingExample[];
  readonly settings: EwcSettings;
  readonly limitMs: number;
}

async function fisherOf(
  { work, options }: ConsolidateContext,
  { plan, examples, settings, limitMs }: FisherInput,
  parameters: Float32Array,
): Promise<Float32Array> {
  if (examples.length === 0) return new Float32Array(parameters.length);
  const { fisherDecay: decay, fisherFloor: floor } = settings;
  const limits = { numSamples: options.fisherSamples, timeLimitMs: limitMs * FISHER_SHARE, decay, floor };
  return (await work.fisher(plan, examples, parameters, limits)).values;
}
