import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import type { Federation } from '../../../learning/federation/federation.ts';
import type { ConsolidateReport } from '../../../learning/sona/consolidate.ts';
import type { PartOutcome } from '../learning-part.ts';
import type { Learning } from '../learning.ts';

/** Parts with versions: model, re-ranking and routing. */
export const LEARNED = ['model', 'reranking', 'routing'] as const;

export type Learned = (typeof LEARNED)[number];

export const LOOPS = ['background', 'deep'] as const;
export type LoopName = (typeof LOOPS)[number];

/** Parts that a run can train: all, or one; `federation` merges the adapters of trusted nodes into that of a model. */
export const RUN_OF = ['all', ...LEARNED, 'federation'] as const;
export type RunOf = (typeof RUN_OF)[number];

/** The outcome of one part of a run. */
export interface PartReport {
  readonly part: Learned | 'patterns' | 'federation';
  /**
   * `trained`: the new version is in use; `refused`: the gate rejected it; `kept`: too few or no new examples; `absent`: there is no
   * such part.
   */
  readonly state: 'trained' | 'refused' | 'kept' | 'absent' | 'failed' | 'cancelled';
  /** The new version; null: none. */
  readonly version: number | null;
  readonly reason: string;
}

export interface RunReport extends Omit<ConsolidateReport, 'version' | 'reason'> {
  /** The new version; null: none. */
  readonly version: number | null;
  readonly isAccepted: boolean;
  /** Of the reasoning bank; deep loop only. */
  readonly numPatternsCreated?: number;
  readonly numPatternsMerged?: number;
  /** Of re-ranking; deep loop only. */
  readonly reranking?: { readonly version: number | null; readonly isAccepted: boolean; readonly reason: string };
}

export interface StepOutcome {
  readonly parts: readonly PartReport[];
  /** Of a model. */
  readonly report?: RunReport;
}

export interface StepContext {
  readonly learning: Pick<Learning, 'sona' | 'parts' | 'pathOf'>;
  /** Null: this node has no key. */
  readonly federation: Pick<Federation, 'deltasOf'> | null;
  readonly tenant: string;
  readonly model: string;
  readonly loop: LoopName;
  readonly signal: AbortSignal;
  /** Why no router can be trained here. */
  readonly noRouting: string;
  hold<T>(id: string, work: (modelId: string) => Promise<T>): Promise<T>;
}

function partOf(part: PartReport['part'], { version, reason }: PartOutcome): PartReport {
  const state = version === null ? 'kept' : version.isAccepted ? 'trained' : 'refused';
  return { part, state, version: version?.version ?? null, reason };
}

function reportOf({ version, reason: _reason, ...counts }: ConsolidateReport, more: Partial<RunReport>): RunReport {
  return { version: version?.version ?? null, isAccepted: version?.isAccepted ?? false, ...counts, ...more };
}

const MODEL_STEPS: Readonly<Record<LoopName, (context: StepContext, id: string) => Promise<StepOutcome>>> = {
  async background({ learning, tenant, signal }, id) {
    const adapter = await learning.sona.backgroundConsolidate(tenant, id, { signal });
    return { parts: [partOf('model', adapter)], report: reportOf(adapter, {}) };
  },
  async deep({ learning, tenant, signal }, id) {
    const { adapter, bank, reranker } = await learning.sona.deepOptimize(tenant, id, { signal });
    const { numCreated, numMerged } = bank;
    const { version, reason } = reranker;
    const patterns: PartReport = {
      part: 'patterns',
      state: numCreated + numMerged > 0 ? 'trained' : 'kept',
      version: null,
      reason: `${numCreated} new patterns, ${numMerged} strengthened`,
    };
    const report = reportOf(adapter, {
      numPatternsCreated: numCreated,
      numPatternsMerged: numMerged,
      reranking: { version: version?.version ?? null, isAccepted: version?.isAccepted ?? false, reason },
    });
    return { parts: [partOf('model', adapter), patterns, partOf('reranking', reranker)], report };
  },
};

const STEPS: Readonly<Record<Exclude<RunOf, 'all'>, (context: StepContext) => Promise<StepOutcome>>> = {
  model: (context) => context.hold(context.model, (id) => MODEL_STEPS[context.loop](context, id)),
  reranking: async ({ learning, tenant, loop, signal }) => ({
    parts: [partOf('reranking', await learning.sona.reranking.train(tenant, loop, signal))],
  }),
  async routing({ learning, tenant, loop, signal, noRouting }) {
    const part = learning.parts().find(({ name }) => name === 'routing');
    if (part === undefined) return { parts: [{ part: 'routing', state: 'absent', version: null, reason: noRouting }] };
    return { parts: [partOf('routing', await part.train(tenant, loop, { signal }))] };
  },
  federation: ({ learning, federation, tenant, model, signal, hold }) =>
    hold(model, async (id) => {
      const path = learning.pathOf(id);
      if (federation === null || path === null)
        return { parts: [{ part: 'federation', state: 'absent', version: null, reason: federation === null ? 'this node has no key' : `the model ${id} is not loaded` }] }; // prettier-ignore
      const deltas = await federation.deltasOf(tenant, id, path);
      return { parts: [partOf('federation', await learning.sona.mergePeers(tenant, id, deltas, { signal }))] };
    }),
};

/** The deep loop of a model includes re-ranking. */
const ALL_STEPS: Readonly<Record<LoopName, readonly Learned[]>> = {
  background: LEARNED,
  deep: ['model', 'routing'],
};

/** Runs the parts one after the other; a failure in one does not stop the others. */
export async function runSteps(
  context: StepContext,
  of: RunOf,
  onPart: (parts: readonly PartReport[], report: RunReport | null) => void,
): Promise<void> {
  for (const step of of === 'all' ? ALL_STEPS[context.loop] : [of]) {
    try {
      if (context.signal.aborted) throw new RuvLLMError('aborted', 'cancelled before it began');
      const { parts, report } = await STEPS[step](context);
      onPart(parts, report ?? null);
    } catch (error) {
      const state = context.signal.aborted ? 'cancelled' : 'failed';
      const reason = messageOf(error);
      onPart([{ part: step, state, version: null, reason }], null);
    }
  }
}
