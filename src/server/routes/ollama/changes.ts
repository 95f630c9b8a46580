import { RuvLLMError } from '../../../core/errors.ts';
import { isObject } from '../../wire/fields.ts';
import { refusal } from '../../errors.ts';
import type { ModelLibrary, SavedModel } from '../../model-library.ts';
import type { PullJob } from '../../pull-jobs.ts';
import { type Exchange, json, type RouteCodes } from '../../route.ts';
import type { Services } from '../../services.ts';
import {
  booleanField,
  type Field,
  objectField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../../wire/fields.ts';
import { modelField } from '../../wire/ollama/generation-request.ts';
import { anyField } from '../../wire/ollama/any-field.ts';
import { parseModelfile } from '../../wire/ollama/modelfile.ts';
import { OPTION_NAMES, readOptions } from '../../wire/ollama/options.ts';
import { unsupported } from '../../wire/unsupported.ts';
import { requireCatalog } from '../model-admin.ts';
import { readRequestOf, streamObjects } from './exchange.ts';
import { findServed, notFound, withoutLatest } from '../../resolve-model.ts';

/** `name` is the older spelling of `model`. */
const NAMED = { model: modelField, name: modelField };
const PULL = { ...NAMED, stream: booleanField, insecure: booleanField };
const COPY = { source: requiredField(modelField), destination: requiredField(modelField) };
/** Invalid values are a 400 now, not with each request; unknown ones are left out. */
const parametersField: Field<Readonly<Record<string, unknown>>> = {
  ...objectField,
  read(value, path) {
    const parameters = objectField.read(value, path);
    readOptions(parameters);
    return Object.fromEntries(Object.entries(parameters).filter(([name]) => OPTION_NAMES.includes(name)));
  },
};
const CREATE = {
  ...NAMED,
  from: modelField,
  modelfile: stringField(2 ** 20),
  system: stringField(2 ** 20),
  template: stringField(2 ** 20),
  parameters: parametersField,
  messages: anyField,
  adapters: anyField,
  files: anyField,
  quantize: stringField(64),
  stream: booleanField,
};

/** Routes that change the models of this machine. */
export const routes = {
  'POST /api/pull': {
    summary: 'Downloads a model; progress as a stream.',
    body: schemaOf(PULL),
    ignoresUnknownFields: true,
    handle: pull,
  },
  'POST /api/create': {
    summary: 'Saves a model: another one with defaults.',
    body: schemaOf(CREATE),
    ignoresUnknownFields: true,
    handle: create,
  },
  'POST /api/copy': {
    summary: 'Saves a model under a second name.',
    body: schemaOf(COPY),
    ignoresUnknownFields: true,
    handle: copy,
  },
  'DELETE /api/delete': {
    summary: 'Removes a saved or downloaded model.',
    body: schemaOf(NAMED),
    ignoresUnknownFields: true,
    handle: remove,
  },
  'POST /api/push': {
    summary: 'Not supported: there is no registry.',
    body: schemaOf(PULL),
    ignoresUnknownFields: true,
    handle: push,
  },
} satisfies RouteCodes;

function requireLibrary({ library }: Services): ModelLibrary {
  if (library !== null) return library;
  throw refusal(501, 'not_implemented', 'this server has no library of models');
}

function nameOf(fields: { readonly model: string | null; readonly name: string | null }): string {
  const name = fields.model ?? fields.name;
  if (name !== null) return withoutLatest(name);
  throw refusal(400, 'missing_required_parameter', "'model' is required", { param: 'model' });
}

async function pull(exchange: Exchange): Promise<Response> {
  const { services, caller } = exchange;
  requireCatalog(services);
  const pulls = services.pulls!;
  const fields = await readRequestOf(exchange, (body) => readFields(body, PULL));
  const job = pulls.start(nameOf(fields));
  const events = writePull(pulls.watch(job.id, caller.signal));
  if (fields.stream ?? true) return streamObjects(exchange, events, () => {});
  for await (const _event of events);
  return json({ status: 'success' });
}

/** A file is named by a digest in Ollama; here by its own name. */
async function* writePull(jobs: AsyncIterable<PullJob>): AsyncGenerator<object, void, undefined> {
  yield { status: 'pulling manifest' };
  for await (const { state, step, error } of jobs) {
    if (state === 'failed') throw new RuvLLMError('download_failed', error!.message);
    if (state === 'cancelled') throw new RuvLLMError('aborted', 'the pull was cancelled');
    if (state === 'done') yield { status: 'success' };
    else if (step !== null && step.totalBytes === null) yield { status: `${step.phase} ${step.item}` };
    else if (step !== null) {
      const { item, doneBytes: completed, totalBytes: total } = step;
      yield { status: `pulling ${item}`, digest: item, total, completed };
    }
  }
}

async function create(exchange: Exchange): Promise<Response> {
  const { services } = exchange;
  const library = requireLibrary(services);
  const fields = await readRequestOf(exchange, (body) => readFields(body, CREATE));
  const name = nameOf(fields);
  if (fields.template !== null && fields.template !== '') throw unsupported('template', 'a chat template of a model');
  if (fields.quantize !== null && fields.quantize !== '') throw unsupported('quantize', 'quantization');
  for (const field of ['files', 'adapters'] as const) {
    if (isObject(fields[field]) && Object.keys(fields[field]).length > 0) {
      throw unsupported(field, 'a file of the client');
    }
  }
  const model: SavedModel = { ...readDefinition(fields), createdMs: services.clock.wallClock() };
  if (model.adapter !== null) throw unsupported('modelfile', 'ADAPTER in a Modelfile of a client');
  await requireModel(services, library, model.from);
  await library.saved.save(name, model);
  const events = (async function* () {
    yield { status: 'reading model metadata' };
    yield { status: 'writing manifest' };
    yield { status: 'success' };
  })();
  if (fields.stream ?? true) return streamObjects(exchange, events, () => {});
  return json({ status: 'success' });
}

function readDefinition(fields: {
  readonly from: string | null;
  readonly modelfile: string | null;
  readonly system: string | null;
  readonly parameters: Readonly<Record<string, unknown>> | null;
  readonly messages: unknown;
}): Omit<SavedModel, 'createdMs'> {
  const { modelfile, from, system, parameters, messages } = fields;
  if (modelfile !== null) return parseModelfile(modelfile);
  if (from === null) throw refusal(400, 'missing_required_parameter', "'from' is required", { param: 'from' });
  const turns = messages === null ? [] : messages;
  const isTurn = (turn: unknown): turn is { role: string; content: string } =>
    isObject(turn) && typeof turn['role'] === 'string' && typeof turn['content'] === 'string';
  if (!Array.isArray(turns) || !turns.every(isTurn)) {
    throw refusal(400, 'invalid_value', "'messages' must be a list of messages", { param: 'messages' });
  }
  return {
    from,
    system: system === '' ? null : system,
    parameters: parameters ?? {},
    adapter: null,
    messages: turns.map(({ role, content }) => ({ role, content })),
  };
}

/** A served, saved or downloaded model; clients must not name files. */
async function requireModel(services: Services, library: ModelLibrary, name: string): Promise<void> {
  if (findServed(services, name) !== null || (await library.saved.find(name)) !== null) return;
  library.requireReference(name);
  try {
    await library.locate(name);
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'not_found') throw notFound(name, []);
    throw error;
  }
}

async function copy(exchange: Exchange): Promise<Response> {
  const { services } = exchange;
  const library = requireLibrary(services);
  const { source, destination } = await readRequestOf(exchange, (body) => readFields(body, COPY));
  await requireModel(services, library, source);
  const base = await library.saved.find(source);
  const plain = { from: withoutLatest(source), system: null, parameters: {}, adapter: null, messages: [] };
  await library.saved.save(destination, { ...(base ?? plain), createdMs: services.clock.wallClock() });
  return new Response(null, { status: 200 });
}

async function remove(exchange: Exchange): Promise<Response> {
  const { services } = exchange;
  const library = requireLibrary(services);
  const name = nameOf(await readRequestOf(exchange, (body) => readFields(body, NAMED)));
  const isSaved = (await library.saved.find(name)) !== null;
  const served = isSaved ? null : findServed(services, name);
  if (served !== null && !served.isAdded) {
    throw refusal(409, 'conflict', `the server was started with ${served.id}; stop it before you delete the model`);
  }
  try {
    library.requireReference(name);
    if (served !== null) await services.models.remove(served.id, { force: true, drainMs: 0 });
    await library.remove(name);
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'not_found') throw notFound(name, []);
    throw error;
  }
  return new Response(null, { status: 200 });
}

function push(): never {
  throw refusal(501, 'not_implemented', 'models cannot be pushed: there is no registry; share the GGUF file instead');
}
