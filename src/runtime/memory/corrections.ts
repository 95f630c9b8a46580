import { hashText, nameId } from '../../memory/common/ids.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { EmbeddedText, Memory } from '../../memory/memory.ts';
import { nodeFromRecord, nodeToRecord } from '../../memory/schemas/node.ts';
import { type Trajectory, trajectoryName } from '../../memory/schemas/trajectory.ts';
import type { FieldCondition, MemoryRecord, PutRecord } from '../../memory/types.ts';
import { countContentWords, createQuestionMatcher, plainQuestion, type QuestionMatcher, repeatsCorrection } from './same-question.ts'; // prettier-ignore

/** A corrected answer and its question. */
export interface CorrectedPair {
  readonly id: string;
  readonly question: string;
  readonly answer: string;
  /** How often the prompt shows it: once, and once more for each request that had to be corrected again. */
  readonly numTimes: number;
}

/** The outcome for a correction in the memory. */
export type RememberedCorrection =
  | {
      readonly state: 'remembered';
      readonly id: string;
      /** Requests whose corrections it replaces. */
      readonly supersedes: readonly string[];
      /** Earlier requests with the same correction. The first repetition is answered by a stronger recall, later ones are learned. */
      readonly numRepeats: number;
    }
  | { readonly state: 'already-known' | 'refused'; readonly reason: string };

/** Corrected answers, recalled for near questions of the same user; separate for each tenant. */
export interface Corrections {
  /** Resolves when the next request can recall it. */
  remember(tenant: string, corrected: Trajectory): Promise<RememberedCorrection>;
  /** The correction for a question; null: none is near enough. `embed` is called only if the user has corrections. */
  recall(
    tenant: string,
    user: string | null,
    question: string,
    embed: () => Promise<EmbeddedText | null>,
  ): Promise<CorrectedPair | null>;
  /**
   * Stops recalling the correction that a rejected answer repeated, for its own question: a near question may only have recalled it in
   * error. Recalls it again if the rating became praise. Returns their number.
   */
  reconsider(
    tenant: string,
    rated: Pick<Trajectory, 'query' | 'answer' | 'userId' | 'retrieved' | 'verdict'>,
  ): Promise<number>;
  /** Deletes the corrections that match; those that they superseded are recalled again. Returns their number. */
  forget(tenant: string, conditions: readonly FieldCondition[]): Promise<number>;
  /** The number of corrections that are recalled. */
  count(tenant: string): Promise<number>;
  /** Stops recalling corrections of a model's answers made since a time, and keeps them. Returns their number. */
  retire(tenant: string, model: string, sinceMs: number): Promise<number>;
}

const SOURCE = 'correction';
/** Longer texts would fill a small context; the learning loops can learn from them. */
const MAX_QUESTION = 2048;
const MAX_ANSWER = 4096;
/** Candidates by similarity; shared words decide among them. */
const NUM_CANDIDATES = 16;
const PAGE = 500;
/** Of one correction in a prompt. A small model may misspell a name that it has read once. */
const MAX_TIMES = 3;
/** Requests noted with a correction. */
const MAX_REPEATS = 16;
const MAX_USERS = 10_000;
/** A shorter question within a conversation refers to it, and means something else in another one. */
const MIN_FOLLOW_UP_WORDS = 2;

const isCorrection: FieldCondition = { field: 'source', is: '=', value: SOURCE };
const isCurrent: FieldCondition = { field: 'isCurrent', is: '=', value: true };
const ofUser = (user: string | null): FieldCondition => ({ field: 'userId', is: '=', value: user });

/** Recall by `memory` leaves corrections out: they may belong to another user. */
export const noCorrections: FieldCondition = { field: 'source', is: '!=', value: SOURCE };

/** Switched off, it only forgets and retires. */
export function createCorrections(memory: Memory, isOn = true): Corrections {
  const { store, services } = memory;
  const matchers = new Map<string | null, Promise<QuestionMatcher>>();
  /** Users without corrections: most requests need not ask the memory's thread. Not where other processes write. */
  const withoutAny = new Set<string>();
  let numChanges = 0;
  memory.watch?.({
    put(records) {
      if (!records.some(({ kind, fields }) => kind === 'qa-pair' && fields['source'] === SOURCE)) return;
      numChanges++;
      withoutAny.clear();
    },
    delete() {},
    erase() {},
  });

  async function hasAny(tenant: string, user: string | null): Promise<boolean> {
    const key = JSON.stringify([tenant, user]);
    if (withoutAny.has(key)) return false;
    const before = numChanges;
    const count = await store.count(tenant, { kinds: ['qa-pair'], filter: { fields: [isCorrection, isCurrent, ofUser(user)] } }); // prettier-ignore
    if (count > 0) return true;
    if (withoutAny.size === MAX_USERS) withoutAny.clear();
    // A correction may have been stored since the count.
    if (memory.watch !== null && numChanges === before) withoutAny.add(key);
    return false;
  }

  /** Calibrated with the first correction of a process. */
  function matcherOf(space: string | null): Promise<QuestionMatcher> {
    const existing = matchers.get(space);
    if (existing !== undefined) return existing;
    const matcher = createQuestionMatcher(async (text) => (await memory.embed(text))?.vector ?? null);
    matchers.set(space, matcher);
    matcher.catch(() => matchers.delete(space));
    return matcher;
  }

  const hashOf = (question: string): string => hashText(services.sha256, plainQuestion(question));

  async function find(tenant: string, fields: readonly FieldCondition[], limit = PAGE, createdFromMs?: number) {
    const filter = { fields: [isCorrection, ...fields], ...(createdFromMs === undefined ? {} : { createdFromMs }) };
    return (await store.find(tenant, { kinds: ['qa-pair'], filter, order: 'newest', limit })).records;
  }

  /** The user's current corrections of this question and of near ones, the best first. */
  async function match(tenant: string, user: string | null, question: string, embedded: EmbeddedText | null) {
    const own = [isCurrent, ofUser(user)];
    const exact = await find(tenant, [...own, { field: 'question', is: '=', value: hashOf(question) }], 1);
    if (exact.length > 0) return exact.map((record) => ({ record, score: Infinity, isSame: true }));
    if (embedded === null) return [];
    const fields = [isCorrection, ...own];
    const nearest = await store.nearest(tenant, { ...embedded, kinds: ['qa-pair'], k: NUM_CANDIDATES, filter: { fields } }); // prettier-ignore
    const matcher = await matcherOf(embedded.space);
    const asked = { text: question, vector: embedded.vector };
    return nearest
      .map(({ record }) => {
        const stored = { text: pairOf(record).question, vector: record.vector };
        return { record, score: matcher.score(asked, stored), isSame: matcher.isSame(asked, stored) };
      })
      .filter(({ score }) => score >= matcher.near)
      .toSorted((a, b) => b.score - a.score);
  }

  async function put(
    tenant: string,
    { query, correction, requestId, userId, sessionId, model }: Trajectory,
    embedded: EmbeddedText | null,
    superseded: readonly MemoryRecord[],
  ): Promise<string> {
    const id = services.newId();
    const [question, answer] = [query.trim(), correction!.trim()];
    const node = nodeToRecord(
      {
        id,
        kind: 'qa-pair',
        text: `${question}\n${answer}`,
        source: SOURCE,
        topic: null,
        quality: 1,
        metadata: { question, answer },
        expiresMs: null,
        embedding: embedded?.vector ?? null,
        space: embedded?.space ?? null,
      },
      tenant,
    );
    const fields = { ...node.fields, userId, requestId, conversation: sessionId, question: hashOf(question), model, isCurrent: true }; // prettier-ignore
    await memory.meet(tenant);
    await store.put([{ ...node, fields, ifVersion: 0 }, ...superseded.map((record) => withCurrent(record, false))]);
    const request = nameId(services.sha256, tenant, ...trajectoryName(requestId));
    await memory.graph.link(tenant, [
      { from: id, to: request, relation: 'derived', weight: 1, confidence: 1 },
      ...superseded.map((old) => ({ from: id, to: old.id, relation: 'supersedes', weight: 1, confidence: 1 })),
    ]);
    return id;
  }

  /** Notes that a request needed the same correction again; returns the number of such requests. */
  async function repeat(record: MemoryRecord, requestId: string): Promise<number> {
    const node = nodeFromRecord(record);
    const { repeatedBy = [] } = node.metadata as PairMetadata;
    if (record.fields['requestId'] === requestId || repeatedBy.includes(requestId)) return repeatedBy.length;
    const next = [...repeatedBy, requestId].slice(-MAX_REPEATS);
    const { body } = nodeToRecord({ ...node, metadata: { ...node.metadata, repeatedBy: next } }, record.tenant);
    await store.put([{ ...withCurrent(record, true), body }]);
    return next.length;
  }

  /** The corrections that only these ones superseded are current again. */
  async function restoreSuperseded(tenant: string, gone: readonly MemoryRecord[]): Promise<void> {
    for (const { id } of gone.filter(({ fields }) => fields['isCurrent'] === true)) {
      const edges = await memory.graph.neighbours(tenant, id, { relations: ['supersedes'], direction: 'out' });
      const records = await store.get(tenant, edges.map((edge) => edge.id)); // prettier-ignore
      const left = records.filter((record) => record !== null && !gone.some((one) => one.id === record.id));
      if (left.length > 0) await store.put(left.map((record) => withCurrent(record!, true)));
    }
  }

  return {
    async remember(tenant, corrected) {
      if (!isOn) return { state: 'refused', reason: 'recall of corrections is off' };
      const { query, answer, correction, requestId, userId } = corrected;
      const question = query.trim();
      const reason = whyNot(question, correction!.trim(), corrected);
      if (reason !== null) return { state: 'refused', reason };
      if (plainQuestion(answer) === plainQuestion(correction!)) {
        return { state: 'already-known', reason: 'the answer already says this' };
      }
      return retryConflict(async () => {
        const embedded = await memory.embed(question);
        const matches = await match(tenant, userId, question, embedded);
        const old = matches.filter(({ isSame }) => isSame).map(({ record }) => record);
        const equal = old.find((record) => plainQuestion(pairOf(record).answer) === plainQuestion(correction!));
        if (equal !== undefined) {
          return { state: 'remembered', id: equal.id, supersedes: [], numRepeats: await repeat(equal, requestId) };
        }
        const id = await put(tenant, corrected, embedded, old);
        const supersedes = old.map(({ fields }) => String(fields['requestId'])).filter((other) => other !== requestId);
        return { state: 'remembered', id, supersedes, numRepeats: 0 };
      });
    },
    async recall(tenant, user, question, embed) {
      if (!isOn || !(await hasAny(tenant, user))) return null;
      const [best] = await match(tenant, user, question, await embed());
      return best === undefined ? null : pairOf(best.record);
    },
    async reconsider(tenant, { query, answer, userId, retrieved, verdict }) {
      const isRejected = verdict === 'failure';
      if (!isOn || retrieved.length === 0 || (!isRejected && verdict !== 'success')) return 0;
      const isRepeated = (record: MemoryRecord): boolean =>
        record.fields['source'] === SOURCE && repeatsCorrection(answer, query, pairOf(record).answer);
      return retryConflict(async () => {
        const shown = await store.get(tenant, retrieved.map(({ id }) => id)); // prettier-ignore
        const repeated = shown.filter((record) => record !== null && isRepeated(record)) as readonly MemoryRecord[];
        if (repeated.length === 0) return 0;
        const matches = await match(tenant, userId, query.trim(), await memory.embed(query.trim()));
        const same = matches.filter(({ isSame }) => isSame).map(({ record }) => record.id);
        // A newer correction of the question stays.
        const changed = repeated.filter(({ id }) => (isRejected ? same.includes(id) : same.length === 0));
        if (changed.length > 0) await store.put(changed.map((record) => withCurrent(record, !isRejected)));
        return changed.length;
      });
    },
    async forget(tenant, conditions) {
      let count = 0;
      for (;;) {
        const gone = await find(tenant, conditions);
        if (gone.length === 0) return count;
        await restoreSuperseded(tenant, gone);
        count += await store.delete(tenant, gone.map(({ id }) => id)); // prettier-ignore
      }
    },
    count: (tenant) => store.count(tenant, { kinds: ['qa-pair'], filter: { fields: [isCorrection, isCurrent] } }),
    async retire(tenant, model, sinceMs) {
      let count = 0;
      for (;;) {
        const page = await find(tenant, [isCurrent, { field: 'model', is: '=', value: model }], PAGE, sinceMs);
        if (page.length === 0) return count;
        await store.put(page.map((record) => withCurrent(record, false)));
        count += page.length;
      }
    },
  };
}

/** Why a correction cannot be recalled; null: it can. */
function whyNot(question: string, answer: string, { prompt }: Trajectory): string | null {
  if (plainQuestion(question) === '') return 'the request has no text to recall it for';
  if (question.length > MAX_QUESTION) return `the question has ${question.length} characters; ${MAX_QUESTION} can be recalled`; // prettier-ignore
  if (answer.length > MAX_ANSWER) return `the correction has ${answer.length} characters; ${MAX_ANSWER} can be recalled`; // prettier-ignore
  const isFollowUp = prompt === null || (typeof prompt !== 'string' && prompt.some(({ role }) => role === 'assistant'));
  if (isFollowUp && countContentWords(question) < MIN_FOLLOW_UP_WORDS) {
    return 'the question refers to the conversation before it';
  }
  return null;
}

function withCurrent(record: MemoryRecord, isCurrentNow: boolean): PutRecord {
  const { version, updatedMs: _, ...rest } = record;
  return { ...rest, fields: { ...rest.fields, isCurrent: isCurrentNow }, ifVersion: version };
}

type PairMetadata = {
  readonly question: string;
  readonly answer: string;
  /** Requests that were corrected in the same way; missing: none. */
  readonly repeatedBy?: readonly string[];
};

function pairOf(record: MemoryRecord): CorrectedPair {
  const { question, answer, repeatedBy = [] } = nodeFromRecord(record).metadata as PairMetadata;
  return { id: record.id, question, answer, numTimes: Math.min(MAX_TIMES, 1 + repeatedBy.length) };
}
