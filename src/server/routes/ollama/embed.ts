import { RuvLLMError } from '../../../core/errors.ts';
import type { EmbedInput, EmbedResult } from '../../../runtime/embeddings.ts';
import type { Tokenizer } from '../../../runtime/lower-layers.ts';
import { type Exchange, json, type RouteCodes } from '../../route.ts';
import {
  booleanField,
  type Field,
  integerField,
  invalid,
  objectField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../../wire/fields.ts';
import { keepAliveField } from '../../wire/ollama/duration.ts';
import { modelField } from '../../wire/ollama/generation-request.ts';
import { readRequestOf } from './exchange.ts';
import { resolveModel } from '../../resolve-model.ts';

const MAX_INPUTS = 2048;
const MAX_CHARS = 2 ** 20;

const inputField: Field<readonly string[]> = {
  schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
  read(value, path) {
    const texts: unknown = typeof value === 'string' ? [value] : value;
    if (!Array.isArray(texts) || texts.length > MAX_INPUTS || !texts.every((text) => typeof text === 'string')) {
      throw invalid(path, `a text or a list of at most ${MAX_INPUTS} texts`, value);
    }
    const numChars = texts.reduce((sum: number, text: string) => sum + text.length, 0);
    if (numChars > MAX_CHARS) throw invalid(path, `at most ${MAX_CHARS} characters`, `${numChars} characters`);
    return texts as string[];
  },
};

const COMMON = { model: requiredField(modelField), keep_alive: keepAliveField, options: objectField };
const EMBED = {
  ...COMMON,
  input: inputField,
  truncate: booleanField,
  dimensions: integerField(1, 65_536),
};
const EMBEDDINGS = { ...COMMON, prompt: stringField(MAX_CHARS) };

export const routes = {
  'POST /api/embed': {
    summary: "Embeddings of texts in Ollama's format.",
    body: schemaOf(EMBED),
    ignoresUnknownFields: true,
    handle: embed,
  },
  'POST /api/embeddings': {
    summary: "The embedding of one text in Ollama's older format.",
    body: schemaOf(EMBEDDINGS),
    ignoresUnknownFields: true,
    handle: embedOne,
  },
} satisfies RouteCodes;

async function embed(exchange: Exchange): Promise<Response> {
  const { clock } = exchange.services;
  const startMs = clock.now();
  const fields = await readRequestOf(exchange, (request) => readFields(request, EMBED));
  const input = fields.input ?? [];
  const isTruncated = fields.truncate ?? true;
  const { embeddings, usage, loadMs } = await compute(exchange, fields.model, input, {
    isTruncated,
    dimensions: fields.dimensions,
    keepAlive: fields.keep_alive,
  });
  const body = {
    model: fields.model,
    embeddings: embeddings.map((vector) => Array.from(vector)),
    total_duration: Math.round((clock.now() - startMs) * 1e6),
    load_duration: Math.round(loadMs * 1e6),
    prompt_eval_count: usage.promptTokens,
  };
  return json(body);
}

async function embedOne(exchange: Exchange): Promise<Response> {
  const fields = await readRequestOf(exchange, (request) => readFields(request, EMBEDDINGS));
  const input = fields.prompt === null || fields.prompt === '' ? [] : [fields.prompt];
  const options = { isTruncated: true, dimensions: null, keepAlive: fields.keep_alive };
  const { embeddings } = await compute(exchange, fields.model, input, options);
  return json({ embedding: Array.from(embeddings[0] ?? []) });
}

interface ComputeOptions {
  /** Whether texts longer than the context are cut. */
  readonly isTruncated: boolean;
  readonly dimensions: number | null;
  readonly keepAlive: { readonly idleMs: number | null } | null;
}

async function compute(
  exchange: Exchange,
  name: string,
  texts: readonly string[],
  { isTruncated, dimensions, keepAlive }: ComputeOptions,
): Promise<EmbedResult & { loadMs: number }> {
  const { services, caller } = exchange;
  const { admission, models, limits, clock } = services;
  const startMs = clock.now();
  const leave = admission.enter(caller.tenant);
  try {
    const { id } = await resolveModel(exchange, name);
    const lease = await models.acquire(id, { ...caller, waitMs: limits.modelWaitMs });
    try {
      const loadMs = clock.now() - startMs;
      if (texts.length === 0) return { embeddings: [], usage: { promptTokens: 0, totalTokens: 0 }, loadMs };
      const { model } = lease;
      const run = (input: EmbedInput): Promise<EmbedResult> =>
        model.embed(input, {
          tenant: caller.tenant,
          signal: caller.signal,
          ...(dimensions === null ? {} : { dimensions }),
        });
      const result = await run(texts).catch((error: unknown) => {
        if (!isTruncated || !(error instanceof RuvLLMError) || error.code !== 'context_overflow') throw error;
        return run(texts.map((text) => encodeCut(model.tokenizer, text, model.modelInfo().maxContext)));
      });
      return { ...result, loadMs };
    } finally {
      lease.release();
      if (keepAlive !== null && caller.scopes.includes('admin')) await models.keepFor(lease.id, keepAlive.idleMs);
    }
  } finally {
    leave();
  }
}

/** The tokens of a text, at most `maxTokens` with the closing one. */
function encodeCut(tokenizer: Tokenizer, text: string, maxTokens: number): number[] {
  const ids = tokenizer.encode(text, { addSpecial: true });
  if (ids.length <= maxTokens) return ids;
  return tokenizer.addsEos ? [...ids.slice(0, maxTokens - 1), ids.at(-1)!] : ids.slice(0, maxTokens);
}
