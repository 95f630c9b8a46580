import { hashText, nameId } from '../../memory/common/ids.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { EmbeddedText, Memory } from '../../memory/memory.ts';
import { nodeFromRecord, nodeToRecord } from '../../memory/schemas/node.ts';
import { type Trajectory, trajectoryName } from '../../memory/schemas/trajectory.ts';
import type { FieldCondition, MemoryRecord, PutRecord } from '../../memory/types.ts';
import { countContentWords, createQuestionMatcher, plainQuestion, type QuestionMatcher } from './same-question.ts';

/** A corrected answer and its question. */
export interface CorrectedPair {
  readonly id: string;
  readonly question: string;
  readonly answer: string;
}

/** The outcome for a correction in the memory. */
export type RememberedCorrection =
  | {
      readonly state: 'remembered';
      readonly id: string;
      /** Requests whose corrections it replaces. */
      readonly supersedes: readonly string[];
      /** Whether an earlier request had the same correction. */
      readonly isRepeated: boolean;
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
          const isRepeated = equal.fields['requestId'] !== requestId;
          return { state: 'remembered', id: equal.id, supersedes: [], isRepeated };
        }
        const id = await put(tenant, corrected, embedded, old);
        const supersedes = old.map(({ fields }) => String(fields['requestId'])).filter((other) => other !== requestId);
        return { state: 'remembered', id, supersedes, isRepeated: false };
      });
    },
    async recall(tenant, user, question, embed) {
      if (!isOn || !(await hasAny(tenant, user))) return null;
      const [best] = await match(tenant, user, question, await embed());
      return best === undefined ? null : pairOf(best.record);
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

function pairOf(record: MemoryRecord): CorrectedPair {
  const { question, answer } = nodeFromRecord(record).metadata as {
    readonly question: string;
    readonly answer: string;
  };
  return { id: record.id, question, answer };
}
