import { DOCUMENT_LIMITS, type Memory } from '../../runtime/lower-layers.ts';
import { operationOf } from '../../runtime/memory-operations.ts';
import { isJson } from '../body-type.ts';
import { refusal } from '../errors.ts';
import { readBytes } from '../json-body.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { tenantOf } from './operation-route.ts';

const FIELD = { schema: { type: 'string' } };

function memoryOf({ services: { memory } }: Exchange): Memory {
  if (memory !== null) return memory;
  throw refusal(501, 'not_implemented', 'this server runs without a memory; start it with --memory PLACE');
}

const run = async (exchange: Exchange, name: string, input: unknown): Promise<object> =>
  operationOf(name).run(memoryOf(exchange), tenantOf(exchange), input);

/** The query parameters that are fields of the document. */
function readQuery({ request }: Exchange): { name?: string; topic?: string; folder?: string; expiresMs?: number } {
  const { searchParams } = new URL(request.url);
  const expires = searchParams.get('expiresMs');
  const texts = ['name', 'topic', 'folder'].flatMap((key) => {
    const value = searchParams.get(key);
    return value === null ? [] : [[key, value]];
  });
  return { ...Object.fromEntries(texts), ...(expires === null ? {} : { expiresMs: Number(expires) }) };
}

async function add(exchange: Exchange): Promise<object> {
  const { request, bodyType } = exchange;
  const memory = memoryOf(exchange);
  if (isJson(bodyType) && !new URL(request.url).searchParams.has('name')) {
    return run(exchange, 'documents.add', await exchange.readBody());
  }
  const { name, ...rest } = readQuery(exchange);
  if (name === undefined) throw refusal(400, 'missing_name', 'name the document with ?name=', { param: 'name' });
  const tenant = tenantOf(exchange);
  const content = await readBytes(request, DOCUMENT_LIMITS.sizeBytes);
  return memory.documents.add(tenant, { name, content, contentType: bodyType?.type ?? '', ...rest });
}

const answering =
  (answer: (exchange: Exchange) => Promise<object>) =>
  async (exchange: Exchange): Promise<Response> =>
    json(await answer(exchange));

/** Documents as a resource. The operations `documents.*` do the same with JSON bodies. */
export const routes = {
  'POST /admin/memory/documents': {
    summary:
      'Adds a document: the body is the file, with its content type, and the name is in the query; or JSON with name and text.',
    query: { name: FIELD, topic: FIELD, folder: FIELD, expiresMs: { schema: { type: 'integer' } } },
    handle: answering(add),
  },
  'GET /admin/memory/documents': {
    summary: 'Lists the documents, the newest first, page by page.',
    query: { limit: { schema: { type: 'integer' } }, after: FIELD },
    handle: answering((exchange) => {
      const { searchParams } = new URL(exchange.request.url);
      const [limit, after] = [searchParams.get('limit'), searchParams.get('after')];
      return run(exchange, 'documents.list', { ...(limit === null ? {} : { limit: Number(limit) }), ...(after === null ? {} : { after }) }); // prettier-ignore
    }),
  },
  'GET /admin/memory/documents/:id': {
    summary: 'A document with its chunks.',
    handle: answering((exchange) => run(exchange, 'documents.get', { id: exchange.params['id']! })),
  },
  'DELETE /admin/memory/documents/:id': {
    summary: 'Removes a document with its chunks.',
    handle: answering((exchange) => run(exchange, 'documents.remove', { id: exchange.params['id']! })),
  },
} satisfies RouteCodes;
