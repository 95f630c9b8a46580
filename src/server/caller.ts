import type { RequestCaller } from '../runtime/requests/caller.ts';
import type { KeyScope } from './keys/key-store.ts';

/** The caller of an HTTP request, as its API key identifies it. */
export interface Caller extends RequestCaller {
  /** Null if the server runs without keys. */
  readonly keyId: string | null;
  readonly scopes: readonly KeyScope[];
}

/** A caller that the server admits itself: the one whose batch a line belongs to. */
export interface BatchCaller extends Pick<Caller, 'tenant' | 'keyId' | 'scopes' | 'priority'> {
  readonly batchId: string;
}
