import { RERANKER_LINE } from '../../../learning/graph-attention/reranker-store.ts';
import { checkRouterText, ROUTER_LINE } from '../../../learning/router-training/router-line.ts';
import { adapterLine, getLearnedAdapter } from '../../../learning/sona/learned-adapter.ts';
import { createFloatBlobs, type FloatBlobs } from '../../../learning/versions/blobs.ts';
import type { LearnedVersion } from '../../../learning/versions/version-log.ts';
import { refuseInput } from '../../../memory/operations/operation.ts';
import type { RollbackReport } from '../learning.ts';
import type { LearningControl } from './control.ts';
import type { Learned } from './run-parts.ts';

/** A line of versions. */
export interface LearnedLine {
  /** The displayed name. */
  readonly name: string;
  readonly line: string;
}

interface LineKind {
  /** Null: a model's line. */
  readonly line: string | null;
  /** The weights for comparison; null: none. */
  weightsOf(blobs: FloatBlobs, tenant: string, version: LearnedVersion): Promise<Float32Array | null>;
  rollback(
    control: LearningControl,
    tenant: string,
    toVersion: number,
    model?: string,
  ): Promise<Pick<RollbackReport, 'serves'> & Partial<RollbackReport>>;
}

const KINDS: Readonly<Record<Learned, LineKind>> = {
  model: {
    line: null,
    weightsOf: async (blobs, tenant, version) => (await getLearnedAdapter(blobs, tenant, version)).parameters,
    rollback: (control, tenant, toVersion, model) =>
      control.withModel(model, (id) => control.learning.rollback(tenant, id, toVersion)),
  },
  reranking: {
    line: RERANKER_LINE,
    async weightsOf(blobs, tenant, { blobs: names }) {
      return names['weights'] === undefined ? null : blobs.get(tenant, names['weights']);
    },
    rollback: async ({ learning }, tenant, toVersion) => ({
      serves: await learning.sona.reranking.rollback(tenant, toVersion),
    }),
  },
  routing: {
    line: ROUTER_LINE,
    weightsOf: async () => null,
    async rollback({ learning, memory }, tenant, toVersion) {
      const { versions } = learning.sona;
      const blobs = createFloatBlobs(memory.store, memory.services);
      if (toVersion !== 0) await checkRouterText(blobs, tenant, await versions.get(tenant, ROUTER_LINE, toVersion));
      return { serves: await versions.rollback(tenant, ROUTER_LINE, toVersion) };
    },
  },
};

/** The selected line; only model lines accept a model name. */
export function lineOf(control: LearningControl, of: Learned, model: string | undefined): LearnedLine {
  const { line } = KINDS[of];
  if (line === null) {
    const name = control.modelName(model);
    return { name, line: adapterLine(name) };
  }
  if (model !== undefined) throw refuseInput(`${of} has no model; omit one of the two`, 'model');
  return { name: line, line };
}

export const kindOf = (of: Learned): LineKind => KINDS[of];
