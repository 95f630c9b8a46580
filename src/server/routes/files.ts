import type { Batches } from '../batches/index.ts';
import type { StoredFile } from '../batches/file-store.ts';
import { isOpen } from '../batches/types.ts';
import { refusal } from '../errors.ts';
import { readBytes, unsupportedType } from '../json-body.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { choiceField } from '../wire/fields.ts';
import { readUpload, writeFile } from '../wire/openai/file.ts';
import { writeList } from '../wire/openai/list-page.ts';
import { pageAfter, readOption } from '../wire/page-query.ts';
import { queryInteger } from '../wire/query-fields.ts';

/** The batches of the server; a 501 if it has no memory to keep them in. */
export function batchesOf({ services }: Pick<Exchange, 'services'>): Batches {
  if (services.batches !== null) return services.batches;
  throw refusal(501, 'not_supported', 'this server has no memory, so it stores no files and runs no batches');
}

/** A file of the caller's tenant; a 404 if there is none. */
export async function findFile(exchange: Exchange, id: string, param: string | null = null): Promise<StoredFile> {
  const file = await batchesOf(exchange).files.find(exchange.caller.tenant, id);
  if (file !== null) return file;
  throw refusal(404, 'not_found', `file ${JSON.stringify(id.slice(0, 200))} not found`, { param });
}

/** Bytes of a form besides its file. */
const FORM_BYTES = 16_384;
const MAX_PAGE = 10_000;

async function readForm({ request, services, bodyType }: Exchange): Promise<FormData> {
  if (bodyType?.type !== 'multipart/form-data') throw unsupportedType('multipart/form-data', request.headers);
  const type = request.headers.get('content-type')!;
  const bytes = await readBytes(request, services.limits.maxBatchFileBytes + FORM_BYTES);
  try {
    return await new Response(bytes as BodyInit, { headers: { 'content-type': type } }).formData();
  } catch (error) {
    throw refusal(400, 'invalid_form', `the body of ${bytes.length} bytes is not a form`, { cause: error });
  }
}

/** Files of batch requests and results, in OpenAI's format. */
export const routes = {
  'POST /v1/files': {
    summary: 'Uploads a file with the requests of a batch, one JSON object per line.',
    body: {
      type: 'object',
      properties: {
        file: { type: 'string', format: 'binary' },
        purpose: { type: 'string', enum: ['batch'] },
        'expires_after[anchor]': { type: 'string', enum: ['created_at'] },
        'expires_after[seconds]': { type: 'integer' },
      },
      required: ['file', 'purpose'],
      additionalProperties: false,
    },
    bodyType: 'multipart/form-data',
    async handle(exchange) {
      const { caller, services } = exchange;
      const { files } = batchesOf(exchange);
      const { name, text, numBytes, retentionMs } = await readUpload(await readForm(exchange));
      const { maxBatchFileBytes } = services.limits;
      if (numBytes > maxBatchFileBytes) {
        throw refusal(413, 'file_too_large', `the file has ${numBytes} bytes; the limit is ${maxBatchFileBytes}`);
      }
      const createdMs = services.clock.wallClock();
      const file: StoredFile = {
        id: `file-${crypto.randomUUID()}`,
        name,
        purpose: 'batch',
        numBytes,
        createdMs,
        expiresMs: createdMs + retentionMs,
        batch: null,
      };
      await files.add(caller.tenant, file, text);
      return json(writeFile(file));
    },
  },
  'GET /v1/files': {
    summary: 'The files, by default the newest first.',
    query: {
      after: { schema: { type: 'string' } },
      limit: { schema: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: MAX_PAGE } },
      order: { schema: { type: 'string', enum: ['asc', 'desc'] } },
      purpose: { schema: { type: 'string', enum: ['batch', 'batch_output'] } },
    },
    async handle(exchange) {
      const query = new URL(exchange.request.url).searchParams;
      const limit = readOption(query, 'limit', queryInteger(1, MAX_PAGE), MAX_PAGE);
      const order = readOption(query, 'order', choiceField(['desc', 'asc']), 'desc');
      const purpose = query.get('purpose');
      const files = await batchesOf(exchange).files.list(exchange.caller.tenant);
      const chosen = purpose === null ? files : files.filter((file) => file.purpose === purpose);
      const ordered = order === 'desc' ? chosen.toReversed() : chosen;
      const { data, hasMore } = pageAfter(ordered, { after: query.get('after'), limit, param: 'after' });
      return json(writeList(data.map(writeFile), hasMore));
    },
  },
  'GET /v1/files/:id': {
    summary: 'A file without its content.',
    handle: async (exchange) => json(writeFile(await findFile(exchange, exchange.params['id']!))),
  },
  'GET /v1/files/:id/content': {
    summary: 'The content of a file: the requests as uploaded, or the results of a batch in the order of its lines.',
    async handle(exchange) {
      const file = await findFile(exchange, exchange.params['id']!);
      return textStream(exchange, batchesOf(exchange).files.content(exchange.caller.tenant, file));
    },
  },
  'DELETE /v1/files/:id': {
    summary: 'Deletes a file; a 409 while a batch reads it.',
    async handle(exchange) {
      const { tenant } = exchange.caller;
      const file = await findFile(exchange, exchange.params['id']!);
      const batches = batchesOf(exchange);
      const reader = (await batches.list(tenant)).find((batch) => isOpen(batch) && batch.inputFileId === file.id);
      if (reader !== undefined) {
        throw refusal(
          409,
          'in_use',
          `the file is the input of ${reader.id}, which is ${reader.status}; cancel it first`,
        );
      }
      await batches.files.delete(tenant, file);
      return json({ id: file.id, object: 'file', deleted: true });
    },
  },
} satisfies RouteCodes;

/** A response that reads pieces of text as the client does; a revoked key does not get the rest. */
export function textStream({ services, caller }: Exchange, pieces: AsyncGenerator<string>): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        services.guard.checkCaller(caller);
        const { value, done } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 1 },
  );
  return new Response(body, { headers: { 'content-type': 'application/jsonl' } });
}
