import type { BoundaryState, TaskSums } from '../ewc/boundary-detector.ts';
import type { EwcTask } from '../ewc/ewc.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion } from '../versions/version-log.ts';
import type { AdapterPlan, LearningModel } from './types.ts';

/** The weights of a version, and what the next run needs so that it does not undo them. */
export interface LearnedAdapter {
  readonly parameters: Float32Array;
  readonly rank: number;
  readonly numLayers: number;
  readonly ewc: EwcState;
}

/** Elastic weight consolidation as of a version. */
export interface EwcState {
  readonly lambda: number;
  /** Finished tasks, the oldest first. */
  readonly tasks: readonly EwcTask[];
  /** How much each parameter matters to the current task, whose anchor are the parameters themselves. */
  readonly fisher: Float32Array;
  /** Creation times of the first requests of tasks, the oldest first; none for the first task. */
  readonly boundariesMs: readonly number[];
  /** The examples seen so far, for the boundary detector; null: none had an embedding. */
  readonly stream: ExampleStream | null;
}

export interface ExampleStream extends BoundaryState {
  /** Fingerprint of the embedder. */
  readonly space: string;
}

/** Consolidation figures shown with a version. */
export interface EwcSummary {
  readonly lambda: number;
  readonly numTasks: number;
  readonly boundariesMs: readonly number[];
}

interface Contents {
  readonly rank: number;
  readonly numLayers: number;
  readonly lambda: number;
  readonly lessons: string;
  /** Names of the peers whose adapters were merged into it; absent: it was trained. */
  readonly peers?: readonly string[];
  /** Missing in older versions, like `stream`. */
  readonly boundariesMs?: readonly number[];
  readonly stream?:
    (TaskSums & { readonly space: string; readonly dim: number; readonly recentMs: readonly number[] }) | null;
}

export const ADAPTER_PREFIX = 'adapter/';
export const adapterLine = (modelId: string): string => ADAPTER_PREFIX + modelId;

/** The layers and factors that a version adapts. */
export function planOf(model: LearningModel, rank: number, numLayers: number): AdapterPlan {
  const { path, maxTokens, hiddenDim, vocabSize } = model;
  return { path, rank, numLayers, maxTokens, ...(numLayers === 0 ? { head: { hiddenDim, vocabSize } } : {}) };
}

/** Writes the weights; returns the part of the version that refers to them. */
export async function putLearnedAdapter(
  blobs: FloatBlobs,
  tenant: string,
  { parameters, ewc, rank, numLayers, lessons, peers }: LearnedAdapter & Pick<Contents, 'lessons' | 'peers'>,
): Promise<Pick<LearnedVersion, 'blobs' | 'contents'>> {
  const { tasks, stream, fisher, lambda, boundariesMs } = ewc;
  const names: Record<string, string> = {
    parameters: await blobs.put(tenant, parameters),
    fisher: await blobs.put(tenant, fisher),
  };
  for (const [i, task] of tasks.entries()) {
    names[`anchor${i}`] = await blobs.put(tenant, task.anchor);
    names[`fisher${i}`] = await blobs.put(tenant, task.fisher);
  }
  if (stream !== null) names['stream'] = await blobs.put(tenant, joinStream(stream));
  const contents: Contents = {
    rank,
    numLayers,
    lambda,
    lessons,
    ...(peers === undefined ? {} : { peers }),
    boundariesMs,
    stream: stream && {
      space: stream.space,
      dim: stream.recent[0]!.embedding.length,
      count: stream.count,
      squares: stream.squares,
      products: stream.products,
      recentMs: stream.recent.map(({ atMs }) => atMs),
    },
  };
  return { blobs: names, contents: contents as unknown as LearnedVersion['contents'] };
}

export async function getLearnedAdapter(
  blobs: FloatBlobs,
  tenant: string,
  version: Pick<LearnedVersion, 'blobs' | 'contents'>,
): Promise<LearnedAdapter> {
  const { rank, numLayers, lambda, boundariesMs = [], stream = null } = version.contents as unknown as Contents;
  const read = (name: string): Promise<Float32Array> => blobs.get(tenant, version.blobs[name]!);
  const tasks: EwcTask[] = [];
  for (let i = 0; `anchor${i}` in version.blobs; i++) {
    tasks.push({ anchor: await read(`anchor${i}`), fisher: await read(`fisher${i}`) });
  }
  // Older versions made a task of every run: the last one is the current one.
  const fisher = 'fisher' in version.blobs ? await read('fisher') : tasks.pop()!.fisher;
  const seen = stream === null ? null : splitStream(stream, await read('stream'));
  return { parameters: await read('parameters'), rank, numLayers, ewc: { lambda, tasks, fisher, boundariesMs, stream: seen } }; // prettier-ignore
}

export function ewcSummary({ blobs, contents }: Pick<LearnedVersion, 'blobs' | 'contents'>): EwcSummary {
  const { lambda, boundariesMs = [] } = contents as unknown as Contents;
  return { lambda, numTasks: Object.keys(blobs).filter((name) => name.startsWith('anchor')).length, boundariesMs };
}

/** The recent embeddings, then the center. */
function joinStream({ center, recent }: ExampleStream): Float32Array {
  return Float32Array.from([...recent.map(({ embedding }) => embedding), center].flatMap((part) => [...part]));
}

function splitStream(
  { recentMs, dim, ...numbers }: NonNullable<Contents['stream']>,
  floats: Float32Array,
): ExampleStream {
  const recent = recentMs.map((atMs, i) => ({ atMs, embedding: floats.slice(i * dim, (i + 1) * dim) }));
  return { ...numbers, center: floats.slice(recent.length * dim), recent };
}

/** The hash of the examples of a version, trained and held out; null: unknown. */
export function lessonsOf({ contents }: Pick<LearnedVersion, 'contents'>): string | null {
  return (contents as { readonly lessons?: string } | null)?.lessons ?? null;
}
