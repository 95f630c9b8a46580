import { existsSync } from 'node:fs';
import type { FeedbackSink } from '../../server/feedback.ts';
import { defaultMasterKeyPath } from '../kept-state.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { openSealedRecords, type SealedRecords } from '../../platform/node/spill/sealed-records.ts';

/** The kind of these records; the name of each is the request's id. */
export const FEEDBACK_KIND = 'feedback';

/** Feedback that can be taken back. */
export interface FeedbackRecords extends FeedbackSink {
  /** What was said of these requests is gone. */
  forget(tenant: string, requestIds: readonly string[]): void;
  /** All that was said by a tenant is gone, and its key. */
  eraseTenant(tenant: string): void;
}

/** Feedback in a folder, sealed for its tenant; a second word on the same request replaces the first. */
export function openFeedbackRecords(folder: string): FeedbackRecords {
  let records: SealedRecords | null = null;
  // With the first feedback: most servers never get any, and need no key for it.
  const open = (): SealedRecords =>
    (records ??= openSealedRecords({ folder, masterKey: readOrCreateMasterKey(defaultMasterKeyPath()) }));
  /** Null: nobody ever said anything. */
  const find = (): SealedRecords | null => (records === null && !existsSync(folder) ? null : open());
  return {
    async put(feedback) {
      const { tenant, requestId } = feedback.request;
      open().put(tenant, FEEDBACK_KIND, requestId, new TextEncoder().encode(JSON.stringify(feedback)));
    },
    forget(tenant, requestIds) {
      for (const id of requestIds) find()?.delete(tenant, FEEDBACK_KIND, id);
    },
    eraseTenant(tenant) {
      find()?.eraseTenant(tenant);
    },
  };
}
