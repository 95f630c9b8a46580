import { BATCH_ENDPOINTS } from '../../batches/input-lines.ts';
import { type Batch, type BatchStatus, isOpen } from '../../batches/types.ts';
import { choiceField, readFields, requiredField, schemaOf, stringField } from '../fields.ts';
import { metadataField } from './chat-request.ts';
import { expiryField } from './file.ts';

const FIELDS = {
  input_file_id: requiredField(stringField(200, 1)),
  endpoint: requiredField(choiceField(BATCH_ENDPOINTS)),
  completion_window: requiredField(choiceField(['24h'])),
  metadata: metadataField,
  output_expires_after: expiryField,
};

export const createBatchSchema = schemaOf(FIELDS);

/** Reads the body of `POST /v1/batches`. */
export function readCreateBatch(body: unknown) {
  const {
    input_file_id: inputFileId,
    endpoint,
    metadata,
    output_expires_after: retentionMs,
  } = readFields(body, FIELDS);
  return { inputFileId, endpoint, metadata: metadata ?? {}, retentionMs };
}

/** Statuses whose time is a field of its own. */
const TIMED: readonly BatchStatus[] = ['in_progress', 'finalizing', 'completed', 'failed', 'expired', 'cancelling', 'cancelled']; // prettier-ignore

/** A batch in OpenAI's format, whose schema has no null for absent fields. */
export function writeBatch(batch: Batch): { readonly id: string } {
  const { id, endpoint, errors, status, times, metadata } = batch;
  const hasEnded = !isOpen(batch);
  const reached = TIMED.filter((name) => times[name] !== undefined);
  return {
    id,
    object: 'batch',
    endpoint,
    ...(errors.length === 0 ? {} : { errors: { object: 'list', data: errors } }),
    input_file_id: batch.inputFileId,
    completion_window: '24h',
    status,
    ...(hasEnded && batch.outputBytes > 0 ? { output_file_id: batch.outputFileId } : {}),
    ...(hasEnded && batch.errorBytes > 0 ? { error_file_id: batch.errorFileId } : {}),
    created_at: secondsOf(batch.createdMs),
    expires_at: secondsOf(batch.windowEndMs),
    ...Object.fromEntries(reached.map((name) => [`${name}_at`, secondsOf(times[name]!)])),
    request_counts: { total: batch.numRequests, completed: batch.numSucceeded, failed: batch.numFailed },
    metadata,
  } as { readonly id: string };
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000);
