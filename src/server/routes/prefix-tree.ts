import type { PrefixReport, Tokenizer } from '../../runtime/lower-layers.ts';
import { refusal } from '../errors.ts';
import type { ModelStatus } from '../../runtime/requests/model-host.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import { queryInteger, queryText, readQuery } from '../wire/query-fields.ts';
import { tenantOf } from './operation-route.ts';

const OPTIONS = {
  model: queryText(512),
  tenant: queryText(256),
  depth: queryInteger(1, 64),
  limit: queryInteger(1, 1000),
};
/** Enough to recognize a prompt. */
const PREVIEW_TOKENS = 48;
const PREVIEW_CHARS = 200;

/** `GET /admin/prefix-tree`: the contents of the prefix cache. */
export const routes = {
  'GET /admin/prefix-tree': {
    summary: 'Cached prefixes of a tenant with their pages and uses; an administrator sees all tenants.',
    query: OPTIONS,
    async handle(exchange) {
      const { request, services } = exchange;
      const { model: name, depth, limit } = readQuery(request, OPTIONS);
      const tenant = visibleTenant(exchange);
      const { id, model } = findLoaded(services, name);
      const report = await model.prefixes({
        tenant,
        maxDepth: depth ?? 8,
        maxNodes: limit ?? 200,
        numPreview: PREVIEW_TOKENS,
      });
      return json({ object: 'prefix_tree', model: id, ...writeReport(report, model.tokenizer) });
    },
  },
} satisfies RouteCodes;

/** Null: all tenants, for an administrator who names none. */
function visibleTenant(exchange: Exchange): string | null {
  const isNamed = new URL(exchange.request.url).searchParams.has('tenant');
  return !isNamed && exchange.caller.scopes.includes('admin') ? null : tenantOf(exchange);
}

/** Never loads a model. */
function findLoaded({ models }: Services, name: string | null) {
  const status = name === null ? (models.list().find(({ model }) => model !== null) ?? null) : models.find(name);
  if (status === null && name !== null) {
    throw refusal(404, 'model_not_found', `the model ${JSON.stringify(name.slice(0, 200))} does not exist here`, {
      param: 'model',
    });
  }
  if (status?.model == null) {
    throw refusal(409, 'model_not_loaded', `${status?.id ?? 'no model'} is ${status?.state ?? 'loaded'}`, {
      param: 'model',
      type: 'conflict_error',
    });
  }
  return status as ModelStatus & { readonly model: NonNullable<ModelStatus['model']> };
}

function writeReport(report: PrefixReport, tokenizer: Tokenizer) {
  const { pageTokens, floatPageBytes, packedPageBytes, isComplete } = report;
  return {
    page_tokens: pageTokens,
    is_complete: isComplete,
    nodes: report.nodes.map((node) => ({
      id: node.id,
      parent: node.parent,
      tenant: node.tenant,
      adapter: node.adapterHash,
      depth: node.depth,
      start_token: node.startToken,
      num_tokens: node.numTokens,
      num_pages: node.numFloatPages + node.numPackedPages,
      bytes: node.numFloatPages * floatPageBytes + node.numPackedPages * packedPageBytes,
      float_pages: node.numFloatPages,
      packed_pages: node.numPackedPages,
      pages_in_use: node.numUsedPages,
      is_session: node.isSession,
      hits: node.numUses,
      last_use: node.lastUseAgo,
      num_children: node.numChildren,
      text: tokenizer.decode(node.previewIds).slice(0, PREVIEW_CHARS).toWellFormed(),
    })),
  };
}
