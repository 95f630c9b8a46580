import { z } from 'zod';
import { type MemoryNode, nodeToRecord } from '../schemas/node.ts';
import { count, name, parseStored, parseWith, text, timeMs, uuid } from '../schemas/primitives.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import type { MemoryRecord, PutRecord } from '../types.ts';
import { AGENT_SOURCE, type Fact, POLARITIES, SPEAKERS, type Statement } from './types.ts';

/** A fact is a phrase: longer values are documents. */
export const MAX_VALUE_CHARS = 512;
const MAX_NAME_CHARS = 128;
/** Times of use that are kept; all are counted. */
export const MAX_USES = 16;

const statement = z.strictObject({
  subject: text(MAX_NAME_CHARS, 1),
  attribute: text(MAX_NAME_CHARS, 1),
  value: text(MAX_VALUE_CHARS, 1),
  polarity: z.enum(POLARITIES),
});

const metadata = statement.extend({
  factKey: uuid,
  speaker: z.enum(SPEAKERS),
  speakerName: name.nullable(),
  sessionId: name,
  userId: name.nullable(),
  requestId: uuid.nullable(),
  turn: count,
  episodeId: uuid,
  order: count,
  saidMs: timeMs,
  isCurrent: z.boolean(),
  isPinned: z.boolean(),
  numUses: count,
  usedMs: z.array(timeMs).max(MAX_USES),
});
type FactMetadata = z.infer<typeof metadata>;

/** A fact with its key, which is the id of the current one. */
export interface StoredFact extends Fact {
  readonly factKey: string;
}

/** Refuses unknown keys and values of another size, with the numbers. */
export const parseStatement = (value: unknown): Statement => parseWith<Statement>(statement, value, 'fact');

/** The words that a search finds. */
export const factText = ({ subject, attribute, value, polarity }: Statement): string =>
  `${subject} ${attribute} ${polarity} ${value}`;

/** A replaced fact has no searchable text and no vector: it is history, and never a result. */
export function factToRecord(fact: StoredFact, tenant: string, embedded: EmbeddedText | null): PutRecord {
  const { id, ...rest } = fact;
  const node: MemoryNode = {
    id,
    kind: 'fact',
    text: factText(fact),
    source: AGENT_SOURCE,
    topic: null,
    quality: null,
    metadata: { ...(rest as FactMetadata), usedMs: [...fact.usedMs] },
    expiresMs: null,
    embedding: embedded?.vector ?? null,
    space: embedded?.space ?? null,
  };
  const record = nodeToRecord(node, tenant);
  const { sessionId, userId, requestId, factKey, speaker, isCurrent } = fact;
  const fields = { ...record.fields, sessionId, userId, requestId, factKey, speaker, isCurrent };
  const body = isCurrent ? record.body : { metadata: (record.body as { readonly metadata: object }).metadata as never };
  return { ...record, createdMs: fact.saidMs, body, fields };
}

export function factFromRecord(record: MemoryRecord): StoredFact {
  const { metadata: stored } = (record.body ?? {}) as { readonly metadata?: unknown };
  return { id: record.id, ...parseStored<FactMetadata>(metadata, stored, `fact ${record.id}`) };
}

/** Whether a record is a fact of the agent memory, and not a text that a caller added. */
export const isAgentFact = ({ kind, fields }: Pick<MemoryRecord, 'kind' | 'fields'>): boolean =>
  kind === 'fact' && fields['source'] === AGENT_SOURCE;
