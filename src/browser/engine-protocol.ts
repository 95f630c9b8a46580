import type { ClientMessage, ServerMessage } from '../engine/protocol.ts';

/** The first message to an engine's worker, before those of its client. */
export interface EngineStart {
  readonly type: 'start';
  /** The lock that tells the page whether the worker lives. */
  readonly lock: string;
  /** Seals KV pages; null: pages are not stored. */
  readonly spillKey: CryptoKey | null;
}

export type ToEngineWorker = EngineStart | ClientMessage;
export type FromEngineWorker =
  ServerMessage | { readonly type: 'started' } | { readonly type: 'warning'; readonly message: string };
