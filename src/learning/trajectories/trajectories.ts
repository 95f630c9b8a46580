import { RuvLLMError } from '../../core/errors.ts';
import { nameId } from '../../memory/common/ids.ts';
import { putBuilt } from '../../memory/record-builders.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import { MAX_TRAJECTORY_TEXT } from '../../memory/schemas/text-lengths.ts';
import {
  type FeedbackEntry,
  type FeedbackOutcome,
  type Trajectory,
  trajectoryFromRecord,
  trajectoryName,
  trajectoryToRecord,
} from '../../memory/schemas/trajectory.ts';
import type { FieldCondition, MemoryStore } from '../../memory/types.ts';
import { type Feedback, scoreOf } from './feedback.ts';
import { verdictOf } from './verdict.ts';

/** A trajectory before and after feedback. */
export interface RatedTrajectory {
  readonly before: Trajectory;
  readonly after: Trajectory;
}

export type NewTrajectory = Omit<
  Trajectory,
  'verdict' | 'feedback' | 'outcome' | 'isDistilled' | 'expiresMs' | 'correction'
>;

export interface TrajectoryQuery {
  readonly conditions?: readonly FieldCondition[];
  readonly order?: 'newest' | 'oldest';
  readonly fromMs?: number;
  /** Excluded. */
  readonly toMs?: number;
  readonly limit: number;
}

export interface TrajectoryPage {
  readonly trajectories: readonly Trajectory[];
  /** Null: last page. */
  readonly next: string | null;
}

/** Requests that can be learned from, by request id; separate for each tenant. */
export interface Trajectories {
  add(tenant: string, trajectory: NewTrajectory): Promise<void>;
  /** All or none. */
  addAll(added: readonly { readonly tenant: string; readonly trajectory: NewTrajectory }[]): Promise<void>;
  get(tenant: string, requestId: string): Promise<Trajectory | null>;
  /** Adds feedback; `not_found` also for a request of another tenant. Implicit feedback changes only unrated requests. */
  rate(tenant: string, feedback: Feedback): Promise<RatedTrajectory>;
  /** Stores what became of the feedback; `not_found` if the request was deleted. */
  conclude(tenant: string, requestId: string, outcome: FeedbackOutcome): Promise<void>;
  find(tenant: string, query: TrajectoryQuery): Promise<readonly Trajectory[]>;
  /** One page of at most `limit`; `after` is `next` of the page before. */
  page(tenant: string, query: TrajectoryQuery & { readonly after?: string }): Promise<TrajectoryPage>;
  markDistilled(tenant: string, requestIds: readonly string[]): Promise<void>;
  /** All of them: the bank starts over. */
  markUndistilled(tenant: string): Promise<void>;
  /** Removes all that match and returns their request ids; `before` is called with them first. */
  remove(
    tenant: string,
    conditions: readonly FieldCondition[],
    before?: (requestIds: readonly string[]) => Promise<void>,
  ): Promise<readonly string[]>;
}

/** How long a trajectory can be learned from. */
const KEEP_MS = 30 * 86_400_000;
const PAGE = 500;
/** Feedback entries that are kept, the newest ones. */
const MAX_FEEDBACK = 16;

export function createTrajectories(store: MemoryStore, services: MemoryServices): Trajectories {
  const idOf = (tenant: string, requestId: string): string =>
    nameId(services.sha256, tenant, ...trajectoryName(requestId));

  const unrated = (one: NewTrajectory): Trajectory => ({
    ...one,
    correction: null,
    verdict: verdictOf(one.quality),
    feedback: [],
    isDistilled: false,
    expiresMs: one.createdMs + KEEP_MS,
  });

  const addAll: Trajectories['addAll'] = async (added) => {
    const all = added.map(({ tenant, trajectory }) => ({ tenant, trajectory: unrated(trajectory) }));
    await putBuilt(store, services.sha256, 'trajectories', all);
  };

  async function change(
    tenant: string,
    requestId: string,
    alter: (one: Trajectory) => Trajectory,
  ): Promise<RatedTrajectory> {
    const id = idOf(tenant, requestId);
    return retryConflict(async () => {
      const [record] = await store.get(tenant, [id]);
      if (record == null || record.kind !== 'trajectory') {
        throw requestNotFound(requestId);
      }
      const before = trajectoryFromRecord(record);
      const after = alter(before);
      if (after !== before) {
        await store.put([{ ...trajectoryToRecord(after, { id, tenant }), ifVersion: record.version }]);
      }
      return { before, after };
    });
  }

  async function* pages(tenant: string, query: TrajectoryQuery): AsyncGenerator<readonly Trajectory[]> {
    let left = query.limit;
    let after: string | undefined;
    while (left > 0) {
      const limit = Math.min(PAGE, left);
      const { trajectories, next } = await page(tenant, { ...query, limit, ...(after === undefined ? {} : { after }) });
      yield trajectories;
      left -= trajectories.length;
      if (next === null) return;
      after = next;
    }
  }

  const page: Trajectories['page'] = async (
    tenant,
    { conditions = [], order = 'newest', fromMs, toMs, limit, after },
  ) => {
    const { records, next } = await store.find(tenant, {
      kinds: ['trajectory'],
      filter: {
        fields: conditions,
        ...(fromMs === undefined ? {} : { createdFromMs: fromMs }),
        ...(toMs === undefined ? {} : { createdToMs: toMs }),
      },
      order,
      limit,
      ...(after === undefined ? {} : { after }),
    });
    return { trajectories: records.map(trajectoryFromRecord), next };
  };

  const find: Trajectories['find'] = async (tenant, query) => {
    const matches: Trajectory[] = [];
    for await (const page of pages(tenant, query)) matches.push(...page);
    return matches;
  };

  return {
    add: (tenant, trajectory) => addAll([{ tenant, trajectory }]),
    addAll,
    async get(tenant, requestId) {
      const [record] = await store.get(tenant, [idOf(tenant, requestId)]);
      return record == null ? null : trajectoryFromRecord(record);
    },
    async rate(tenant, feedback) {
      const { requestId, source = 'api', target = 'answer', correction = null, comment = null, usedSources = null } = feedback; // prettier-ignore
      const score = scoreOf(feedback);
      if (score !== null && !(score >= 0 && score <= 1)) {
        throw new RuvLLMError('invalid_option', `score must be a number from 0 to 1, got ${String(score)}`, {
          data: { option: 'score' },
        });
      }
      if (score === null && correction === null && comment === null && usedSources === null) {
        throw new RuvLLMError(
          'invalid_option',
          'feedback requires a score, thumbs, a correction, a comment or used sources',
          {
            data: { option: 'score' },
          },
        );
      }
      const isRoute = target === 'route';
      if (isRoute && (score === null || correction !== null || usedSources !== null)) {
        throw new RuvLLMError(
          'invalid_option',
          'feedback on a route requires a score or thumbs; corrections and sources belong to the answer',
          {
            data: { option: 'target' },
          },
        );
      }
      const corrected = correction === null ? null : clipText(correction, MAX_TRAJECTORY_TEXT);
      if (corrected !== null && corrected.numCut > 0) {
        throw new RuvLLMError(
          'invalid_option',
          `the correction has ${correction!.length} characters, the limit is ${MAX_TRAJECTORY_TEXT}`,
          { data: { option: 'correction' } },
        );
      }
      const entry: FeedbackEntry = {
        atMs: Math.floor(services.now()),
        source,
        score,
        comment: comment === null ? null : clipText(comment, 4096).text,
        hasCorrection: corrected !== null,
        ...(isRoute ? { target } : {}),
      };
      return change(tenant, requestId, (one) => {
        if (source === 'implicit' && one.feedback.length > 0) return one;
        const retrieved = usedSources === null ? one.retrieved : markedAs(one.retrieved, usedSources);
        // A correction without a score means that the answer was wrong.
        const quality = score ?? (corrected === null ? one.quality : 0);
        return {
          ...one,
          retrieved,
          quality,
          // The models learn from the verdict, the router from the quality.
          verdict: isRoute || (score === null && corrected === null) ? one.verdict : verdictOf(quality),
          // Praise withdraws an earlier correction.
          correction:
            corrected?.text ?? (!isRoute && score !== null && verdictOf(score) === 'success' ? null : one.correction),
          feedback: [...one.feedback, entry].slice(-MAX_FEEDBACK),
          isDistilled: quality === one.quality && corrected === null ? one.isDistilled : false,
        };
      });
    },
    async conclude(tenant, requestId, outcome) {
      await change(tenant, requestId, (one) => ({ ...one, outcome }));
    },
    find,
    page,
    async markDistilled(tenant, requestIds) {
      for (const requestId of requestIds) {
        await change(tenant, requestId, (one) => ({ ...one, isDistilled: true })).catch((error: unknown) => {
          // It was forgotten meanwhile.
          if (!(error instanceof RuvLLMError) || error.code !== 'not_found') throw error;
        });
      }
    },
    async markUndistilled(tenant) {
      const conditions = [{ field: 'isDistilled', is: '=', value: true }] as const;
      for (;;) {
        const page = await find(tenant, { conditions, limit: PAGE });
        if (page.length === 0) return;
        for (const { requestId } of page) await change(tenant, requestId, (one) => ({ ...one, isDistilled: false }));
      }
    },
    async remove(tenant, conditions, before) {
      const gone: string[] = [];
      for (;;) {
        const page = await find(tenant, { conditions, limit: PAGE });
        if (page.length === 0) return gone;
        await before?.(page.map(({ requestId }) => requestId));
        await store.delete(
          tenant,
          page.map(({ requestId }) => idOf(tenant, requestId)),
        );
        gone.push(...page.map(({ requestId }) => requestId));
      }
    },
  };
}

export function requestNotFound(requestId: string): RuvLLMError {
  const shownId = requestId.slice(0, 80);
  return new RuvLLMError('not_found', `request ${JSON.stringify(shownId)} not found among the stored answers`, {
    data: { requestId: shownId },
  });
}

/** Marks these as used and the others as unused; throws for a source that was not shown. */
function markedAs(shown: Trajectory['retrieved'], used: readonly string[]): Trajectory['retrieved'] {
  const unknown = used.find((id) => !shown.some((one) => one.id === id));
  if (unknown !== undefined) {
    const message = `${JSON.stringify(unknown.slice(0, 80))} is none of the ${shown.length} sources that were shown`;
    throw new RuvLLMError('invalid_option', message, { data: { option: 'usedSources' } });
  }
  return shown.map(({ id }) => ({ id, isUsed: used.includes(id) }));
}
