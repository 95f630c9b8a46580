/** Source of all records of the agent memory; recall by `memory` leaves them out, because they may belong to another user. */
export const AGENT_SOURCE = 'agent-memory';

/** Whose words: facts and episodes always name one. */
export const SPEAKERS = ['user', 'assistant', 'tool', 'document'] as const;
export type Speaker = (typeof SPEAKERS)[number];

/** Whose memory: facts of one user are never recalled for another. */
export interface AgentScope {
  readonly tenant: string;
  /** Null: requests that name no user. */
  readonly userId: string | null;
}

/** The words that a fact or an episode comes from. */
export interface Provenance {
  readonly speaker: Speaker;
  /** Name of the tool or document; null: the user or the assistant. */
  readonly speakerName: string | null;
  readonly sessionId: string;
  /** Position of the message in its session, from 0. */
  readonly turn: number;
  readonly requestId: string | null;
}

/** A message as it was said. */
export interface NewEpisode {
  readonly speaker: Speaker;
  /** Required for tools and documents. Default: null. */
  readonly speakerName?: string | null;
  readonly text: string;
  readonly requestId?: string | null;
  /** Whether facts may be extracted from it. Default: not from words of the assistant. */
  readonly isDistillable?: boolean;
}

/** A stored message. */
export interface Episode extends Provenance {
  readonly id: string;
  readonly userId: string | null;
  /** Its beginning, at most `MAX_DISTILLED_CHARS`. */
  readonly text: string;
  /** When it was said; never before an earlier message of the tenant, even if the clock goes back. */
  readonly saidMs: number;
  /** Failed extractions. */
  readonly numTries: number;
}

/** Whether the value holds. */
export const POLARITIES = ['is', 'is not'] as const;
export type Polarity = (typeof POLARITIES)[number];

/** A statement: "the user — favourite colour — is — green". */
export interface Statement {
  /** `user`, or the name of a person or thing. */
  readonly subject: string;
  readonly attribute: string;
  readonly value: string;
  readonly polarity: Polarity;
}

/** A statement with its source; the newest of a key is current, and the others are its history. */
export interface Fact extends Statement, Provenance {
  readonly id: string;
  readonly userId: string | null;
  /** The message it was extracted from. */
  readonly episodeId: string;
  /** Position among the facts of its message: of two that contradict each other, the last one counts. */
  readonly order: number;
  readonly saidMs: number;
  readonly isCurrent: boolean;
  /** Never forgotten. */
  readonly isPinned: boolean;
  /** Requests whose prompts had it. */
  readonly numUses: number;
  /** Times of the last uses, the newest first. */
  readonly usedMs: readonly number[];
}
