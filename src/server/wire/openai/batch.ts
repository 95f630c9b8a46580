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
  const { input_file_id: inputFileId, endpoint, metadata, output_expires_after: retentionMs } = readFields(body, FIELDS);
  return { inputFileId, endpoint, metadata: metadata ?? {}, retentionMs };
}

/** A batch in OpenAI's format. */
export function writeBatch(batch: Batch): { readonly id: string } {
  const { id, endpoint, errors, status, times, metadata } = batch;
  const at = (name: BatchStatus): number | null => (times[name] === undefined ? null : secondsOf(times[name]));
  const hasEnded = !isOpen(batch);
  return {
    id,
    object: 'batch',
    endpoint,
    errors: errors.length === 0 ? null : { object: 'list', data: errors },
    input_file_id: batch.inputFileId,
    completion_window: '24h',
    status,
    output_file_id: hasEnded && batch.outputBytes > 0 ? batch.outputFileId : null,
    error_file_id: hasEnded && batch.errorBytes > 0 ? batch.errorFileId : null,
    created_at: secondsOf(batch.createdMs),
    in_progress_at: at('in_progress'),
    expires_at: secondsOf(batch.windowEndMs),
    finalizing_at: at('finalizing'),
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: at('cancelling'),
    cancelled_at: at('cancelled'),
    request_counts: { total: batch.numRequests, completed: batch.numSucceeded, failed: batch.numFailed },
    metadata,
  } as { readonly id: string };
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000);
