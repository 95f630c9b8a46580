import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';

/** The id of a session's record: the same wherever it is asked for, so that a lookup needs no search. */
export function sessionRecordId(sha256: Sha256, tenant: string, sessionId: string): string {
  return nameId(sha256, tenant, 'session', sessionId);
}
