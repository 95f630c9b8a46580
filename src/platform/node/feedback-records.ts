import type { FeedbackSink } from '../../server/feedback.ts';
import { defaultMasterKeyPath } from './kept-state.ts';
import { readOrCreateMasterKey } from './sealing/master-key.ts';
import { openSealedRecords, type SealedRecords } from './spill/sealed-records.ts';

/** The kind of these records; the name of each is the request's id. */
export const FEEDBACK_KIND = 'feedback';

/** Feedback in a folder, sealed for its tenant; a second word on the same request replaces the first. */
export function openFeedbackRecords(folder: string): FeedbackSink {
  // Opened with the first feedback: most servers never get any, and need no key for it.
  let records: SealedRecords | null = null;
  return {
    async put(feedback) {
      records ??= openSealedRecords({ folder, masterKey: readOrCreateMasterKey(defaultMasterKeyPath()) });
      const { tenant, requestId } = feedback.request;
      records.put(tenant, FEEDBACK_KIND, requestId, new TextEncoder().encode(JSON.stringify(feedback)));
    },
  };
}
