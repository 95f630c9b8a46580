import { z } from 'zod';
import { type MemoryNode, nodeFromRecord, nodeToRecord } from '../schemas/node.ts';
import { count, name, parseStored, text, timeMs, uuid } from '../schemas/primitives.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import type { MemoryRecord, PutRecord } from '../types.ts';
import { AGENT_SOURCE, type Episode, type Provenance, SPEAKERS } from './types.ts';

/** Of a message, for the extraction of facts. */
export const MAX_DISTILLED_CHARS = 4096;

const metadata = z.strictObject({
  speaker: z.enum(SPEAKERS),
  speakerName: name.nullable(),
  sessionId: name,
  userId: name.nullable(),
  requestId: uuid.nullable(),
  turn: count,
  /** The first part of the message: its id is that of the message. */
  episodeId: uuid,
  part: count,
  saidMs: timeMs,
  /** The beginning of the message, in the first part of a message that has facts to extract. */
  message: text(MAX_DISTILLED_CHARS).nullable(),
  numTries: count,
});
type EpisodeMetadata = z.infer<typeof metadata>;

/** A part of a message, as it is searched. */
export interface Passage extends Provenance {
  readonly id: string;
  readonly userId: string | null;
  readonly text: string;
  readonly episodeId: string;
  readonly part: number;
  readonly saidMs: number;
  /** Null: nothing to extract from this part. */
  readonly isDistilled: boolean | null;
  readonly message: string | null;
  readonly numTries: number;
}

export function passageToRecord(passage: Passage, tenant: string, embedded: EmbeddedText | null): PutRecord {
  const { id, text: words, isDistilled, ...rest } = passage;
  const node: MemoryNode = {
    id,
    kind: 'agent-step',
    text: words,
    source: AGENT_SOURCE,
    topic: null,
    quality: null,
    metadata: { ...(rest satisfies EpisodeMetadata) },
    expiresMs: null,
    embedding: embedded?.vector ?? null,
    space: embedded?.space ?? null,
  };
  const { sessionId, userId, requestId, turn, speaker } = passage;
  const record = nodeToRecord(node, tenant);
  const fields = { ...record.fields, sessionId, userId, requestId, turn, speaker, isDistilled };
  return { ...record, createdMs: passage.saidMs, fields };
}

export function passageFromRecord(record: MemoryRecord): Passage {
  // Vectors are left out of some results, and a node needs both or none.
  const node = nodeFromRecord(record.vector === null ? { ...record, space: null } : record);
  const stored = parseStored<EpisodeMetadata>(metadata, node.metadata, `episode ${record.id}`);
  const { isDistilled = null } = record.fields;
  return { ...stored, id: record.id, text: node.text, isDistilled: isDistilled as boolean | null };
}

export function toEpisode({ part: _, episodeId: id, isDistilled: _isDone, message, ...rest }: Passage): Episode {
  return { ...rest, id, text: message ?? rest.text };
}
