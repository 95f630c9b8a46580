import { MAX_RETENTION_MS, BATCH_WINDOW_MS, type Batch, isOpen } from '../batches/types.ts';
import { refusal } from '../errors.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { createBatchSchema, readCreateBatch, writeBatch } from '../wire/openai/batch.ts';
import { PAGE_QUERY, readPage, writeList } from '../wire/openai/list-page.ts';
import { batchesOf, findFile } from './files.ts';

function notFound(id: string): Error {
  return refusal(404, 'not_found', `batch ${JSON.stringify(id.slice(0, 200))} not found`);
}

/** A batch of the caller's tenant; a 404 if there is none. */
async function findBatch(exchange: Exchange): Promise<Batch> {
  const id = exchange.params['id']!;
  const batch = await batchesOf(exchange).find(exchange.caller.tenant, id);
  if (batch === null) throw notFound(id);
  return batch;
}

/** Batches of requests that run in the background, in OpenAI's format. */
export const routes = {
  'POST /v1/batches': {
    summary: 'Starts a batch: the requests of an uploaded file run within 24 hours, at the lowest priority.',
    body: createBatchSchema,
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { caller, services } = exchange;
      const batches = batchesOf(exchange);
      const { inputFileId, endpoint, metadata, retentionMs } = await exchange.readRequest(readCreateBatch);
      const file = await findFile(exchange, inputFileId, 'input_file_id');
      const param = 'input_file_id';
      if (file.purpose !== 'batch') {
        throw refusal(400, 'invalid_value', `the file has the purpose ${file.purpose}; a batch reads files of the purpose batch`, { param }); // prettier-ignore
      }
      if (file.expiresMs < services.clock.wallClock() + BATCH_WINDOW_MS) {
        throw refusal(400, 'file_expires', 'the file expires before the completion window of 24 hours ends; upload it again', { param }); // prettier-ignore
      }
      const { tenant, keyId, scopes } = caller;
      const batch = await batches.create(tenant, {
        endpoint,
        inputFileId,
        keyId,
        scopes,
        metadata,
        retentionMs: retentionMs ?? MAX_RETENTION_MS,
      });
      return json(writeBatch(batch));
    },
  },
  'GET /v1/batches': {
    summary: 'The batches, the newest first.',
    query: PAGE_QUERY,
    async handle(exchange) {
      const query = new URL(exchange.request.url).searchParams;
      const batches = await batchesOf(exchange).list(exchange.caller.tenant);
      const { data, hasMore } = readPage(batches, query, 'desc');
      return json(writeList(data.map(writeBatch), hasMore));
    },
  },
  'GET /v1/batches/:id': {
    summary: 'A batch with its status and the number of finished requests.',
    handle: async (exchange) => json(writeBatch(await findBatch(exchange))),
  },
  'POST /v1/batches/:id/cancel': {
    summary: 'Cancels a batch: running requests are aborted, finished ones keep their results.',
    async handle(exchange) {
      const { id } = await findBatch(exchange);
      const batch = await batchesOf(exchange).cancel(exchange.caller.tenant, id);
      if (batch === null) throw notFound(id);
      if (!isOpen(batch) || batch.status === 'finalizing') {
        throw refusal(409, 'batch_ended', `the batch is ${batch.status} and cannot be cancelled`);
      }
      return json(writeBatch(batch));
    },
  },
} satisfies RouteCodes;
