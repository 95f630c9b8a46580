import type { ModelStatus } from '../../../runtime/requests/model-host.ts';
import type { LibraryModel, ModelFileFacts, SavedModel } from '../../model-library.ts';
import { type Exchange, json, type RouteCodes } from '../../route.ts';
import type { Services } from '../../services.ts';
import { booleanField, readFields, schemaOf } from '../../wire/fields.ts';
import { modelField } from '../../wire/ollama/generation-request.ts';
import { capabilitiesOf, writeDetails } from '../../wire/ollama/model-details.ts';
import { writeModelfile } from '../../wire/ollama/modelfile.ts';
import { readRequestOf } from './exchange.ts';
import { findServed, notFound, withoutLatest, withTag } from '../../resolve-model.ts';

/**
 * The version of Ollama whose API these routes follow, because clients compare it with the one that they require.
 * `ruvllm` has the version of this server.
 */
const API_VERSION = '0.12.0';

const SHOW = { model: modelField, name: modelField, verbose: booleanField };

/** Lists and facts of models. */
export const routes = {
  'GET /api/version': {
    summary: "The version of Ollama's API, and of this server.",
    handle: ({ services }) => json({ version: API_VERSION, ruvllm: services.version }),
  },
  'GET /api/tags': { summary: "The served and downloaded models in Ollama's format.", handle: listTags },
  'GET /api/ps': { summary: "The loaded models in Ollama's format.", handle: listLoaded },
  'POST /api/show': {
    summary: "Facts about one model in Ollama's format.",
    body: schemaOf(SHOW),
    ignoresUnknownFields: true,
    handle: show,
  },
} satisfies RouteCodes;

interface ListedModel {
  readonly name: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly sha256: string | null;
  readonly facts: ModelFileFacts | null;
  readonly saved: SavedModel | null;
  /** Settings of a served model, in Ollama's spelling. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

const describe = ({ library }: Services, path: string | undefined): ModelFileFacts | null =>
  path === undefined ? null : (library?.describe(path) ?? null);

function fromStatus(services: Services, status: ModelStatus): ListedModel {
  const { id: name, path, fileBytes, created } = status;
  const facts = describe(services, path) ?? factsOf(status);
  return {
    name,
    sizeBytes: fileBytes ?? status.heldBytes,
    modifiedMs: created * 1000,
    sha256: null,
    facts,
    saved: null,
    parameters: writeParameters(status),
  };
}

function writeParameters({ maxContext, sampling }: ModelStatus): Readonly<Record<string, unknown>> {
  const parameters = {
    num_ctx: maxContext,
    temperature: sampling.temperature,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    repeat_penalty: sampling.repetitionPenalty,
  };
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value != null));
}

/** Facts of a loaded model without a file. */
function factsOf({ id, model }: ModelStatus): ModelFileFacts | null {
  if (model === null) return null;
  const { architecture, numParameters, quantization, canGenerate, contextLength } = model.modelInfo();
  const metadata = {
    'general.architecture': architecture,
    'general.parameter_count': numParameters,
    [`${architecture}.context_length`]: contextLength,
  };
  return {
    displayName: id,
    architecture,
    numParameters,
    quantization,
    canGenerate: async () => canGenerate,
    contextLength,
    template: null,
    license: null,
    metadata,
  };
}

/** Served models, then saved and downloaded ones under names that are not taken. */
async function listAll(services: Services): Promise<ListedModel[]> {
  const { library, models } = services;
  const served = models.list();
  const listed = served.map((status) => fromStatus(services, status));
  if (library === null) return listed;
  const servedPaths = new Set(served.map(({ path }) => path));
  const files = await library.list();
  const hashes = new Map(files.map(({ path, sha256 }) => [path, sha256]));
  for (const [index, { path }] of served.entries()) {
    listed[index] = { ...listed[index]!, sha256: hashes.get(path ?? '') ?? null };
  }
  const names = new Set(listed.map(({ name }) => name));
  for (const { name, ...saved } of await library.saved.list()) {
    if (names.has(name)) continue;
    const base = await baseOf(services, name, saved.from);
    listed.push({ ...base, name, modifiedMs: saved.createdMs, saved });
    names.add(name);
  }
  for (const file of files) {
    if (!servedPaths.has(file.path) && !names.has(file.name)) listed.push(fromFile(services, file));
  }
  return listed;
}

const fromFile = (services: Services, { name, path, sizeBytes, modifiedMs, sha256 }: LibraryModel): ListedModel => ({
  name,
  sizeBytes,
  modifiedMs,
  sha256,
  facts: describe(services, path),
  saved: null,
});

/** The file behind a saved model, located by its name, because its base may be a path. */
async function baseOf(services: Services, name: string, from: string): Promise<Omit<ListedModel, 'name'>> {
  const served = findServed(services, from);
  if (served !== null) return fromStatus(services, served);
  try {
    return fromFile(services, await services.library!.locate(name));
  } catch {
    // Removed, or not downloaded yet.
    return { sizeBytes: 0, modifiedMs: 0, sha256: null, facts: null, saved: null };
  }
}

/** Clients show the first characters: without a hash of the content, one of name, size and time. */
async function digestOf({ name, sizeBytes, modifiedMs, sha256 }: ListedModel): Promise<string> {
  if (sha256 !== null) return sha256;
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${name} ${sizeBytes} ${modifiedMs}`));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function writeListed(model: ListedModel): Promise<object> {
  const name = withTag(model.name);
  return {
    name,
    model: name,
    modified_at: new Date(model.modifiedMs).toISOString(),
    size: model.sizeBytes,
    digest: await digestOf(model),
    details: writeDetails(model.facts, model.saved?.from ?? ''),
  };
}

async function listTags({ services }: Exchange): Promise<Response> {
  return json({ models: await Promise.all((await listAll(services)).map(writeListed)) });
}

/** A year that clients show as forever. */
const FOREVER = '9999-12-31T23:59:59.000Z';

async function listLoaded({ services }: Exchange): Promise<Response> {
  const loaded = services.models.list().filter(({ model }) => model !== null);
  const models = loaded.map(async (status) => {
    const { expiresMs } = status;
    return {
      ...(await writeListed(fromStatus(services, status))),
      size: status.heldBytes,
      size_vram: 0,
      context_length: status.model!.modelInfo().maxContext,
      expires_at: expiresMs === null ? FOREVER : new Date(expiresMs).toISOString(),
    };
  });
  return json({ models: await Promise.all(models) });
}

async function show(exchange: Exchange): Promise<Response> {
  const { services } = exchange;
  const fields = await readRequestOf(exchange, (body) => readFields(body, SHOW));
  const name = withoutLatest(fields.model ?? fields.name ?? '');
  const model = await findListed(services, name);
  if (model === null) throw notFound(name, []);
  const { facts, saved } = model;
  const all = { ...model.parameters, ...saved?.parameters };
  const parameters = Object.entries(all).flatMap(([key, value]) =>
    [value].flat().map((one) => `${key.padEnd(30)} ${JSON.stringify(one)}`),
  );
  const plain = { from: model.name, system: null, adapter: null, messages: [] };
  const shown = {
    ...(facts?.license == null ? {} : { license: facts.license }),
    modelfile: writeModelfile({ ...(saved ?? plain), parameters: all }),
    parameters: parameters.join('\n'),
    template: facts?.template ?? '',
    ...(saved?.system == null ? {} : { system: saved.system }),
    ...(saved === null || saved.messages.length === 0 ? {} : { messages: saved.messages }),
    details: writeDetails(facts, saved?.from ?? ''),
    model_info: { ...facts?.metadata, ...(facts === null ? {} : { 'general.parameter_count': facts.numParameters }) },
    capabilities: facts === null ? ['completion'] : await capabilitiesOf(facts),
    modified_at: new Date(model.modifiedMs).toISOString(),
  };
  return json(shown);
}

async function findListed(services: Services, name: string): Promise<ListedModel | null> {
  const { library } = services;
  const saved = (await library?.saved.find(name)) ?? null;
  if (saved !== null)
    return { ...(await baseOf(services, name, saved.from)), name, modifiedMs: saved.createdMs, saved };
  const served = findServed(services, name);
  if (served !== null) return fromStatus(services, served);
  try {
    return library === null ? null : fromFile(services, await library.locate(name));
  } catch {
    return null;
  }
}
