import type { KeyScope } from './keys/key-store.ts';
import type { TraceContext } from './trace-context.ts';

/** Who makes a request, as its key says. */
export interface Caller {
  /** Different for every request; in the answer, the log and the feedback. */
  readonly requestId: string;
  readonly tenant: string;
  /** null: the server runs without keys. */
  readonly keyId: string | null;
  readonly scopes: readonly KeyScope[];
  /** Fires when the client leaves. */
  readonly signal: AbortSignal;
  /** The client's trace this request is a part of; null: none. */
  readonly trace: TraceContext | null;
}
