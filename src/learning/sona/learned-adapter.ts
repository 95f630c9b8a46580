import type { EwcTask } from '../ewc/ewc.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion } from '../versions/version-log.ts';

/** What a version of an adapter holds besides its figures. */
export interface LearnedAdapter {
  readonly parameters: Float32Array;
  readonly rank: number;
  readonly numLayers: number;
  readonly lambda: number;
  readonly tasks: readonly EwcTask[];
}

interface Contents {
  readonly rank: number;
  readonly numLayers: number;
  readonly lambda: number;
  readonly taskLambdas: readonly number[];
  readonly lessons: string;
}

export const ADAPTER_PREFIX = 'adapter/';
export const adapterLine = (modelId: string): string => ADAPTER_PREFIX + modelId;

/** Writes the weights; what comes back goes into the version. */
export async function putLearnedAdapter(
  blobs: FloatBlobs,
  tenant: string,
  { parameters, tasks, rank, numLayers, lambda, lessons }: LearnedAdapter & { readonly lessons: string },
): Promise<Pick<LearnedVersion, 'blobs' | 'contents'>> {
  const names: Record<string, string> = { parameters: await blobs.put(tenant, parameters) };
  for (const [i, { anchor, fisher }] of tasks.entries()) {
    names[`anchor${i}`] = await blobs.put(tenant, anchor);
    names[`fisher${i}`] = await blobs.put(tenant, fisher);
  }
  const contents: Contents = { rank, numLayers, lambda, lessons, taskLambdas: tasks.map((task) => task.lambda) };
  return { blobs: names, contents: contents as unknown as LearnedVersion['contents'] };
}

export async function getLearnedAdapter(
  blobs: FloatBlobs,
  tenant: string,
  version: Pick<LearnedVersion, 'blobs' | 'contents'>,
): Promise<LearnedAdapter> {
  const { rank, numLayers, lambda, taskLambdas } = version.contents as unknown as Contents;
  const read = (name: string): Promise<Float32Array> => blobs.get(tenant, version.blobs[name]!);
  const tasks: EwcTask[] = [];
  for (const [i, taskLambda] of taskLambdas.entries()) {
    tasks.push({ anchor: await read(`anchor${i}`), fisher: await read(`fisher${i}`), lambda: taskLambda });
  }
  return { parameters: await read('parameters'), rank, numLayers, lambda, tasks };
}

/** The hash of what a version was trained on and judged by; null: it is not known. */
export function lessonsOf({ contents }: Pick<LearnedVersion, 'contents'>): string | null {
  return (contents as { readonly lessons?: string } | null)?.lessons ?? null;
}
