import { type Contestant, type LoadRequest, startContestant } from './contestant.ts';
import { importBuilt } from './dist.ts';

/** A possible participant of a race. */
export interface Entrant {
  readonly name: string;
  /** Name of the kernels that ours must load. */
  readonly kernels: string;
  /** The build of the native kernels; null for others. */
  readonly build: string | null;
  start(): Contestant;
}

export const peer: Entrant = {
  name: 'node-llama-cpp',
  kernels: '',
  build: null,
  start: () => startContestant('node-llama-cpp', new URL('llama-cpp-contestant.js', import.meta.url)),
};

const ours = (name: string, build: string | null, env: Record<string, string> = {}): Entrant => ({
  name,
  kernels: name,
  build,
  start: () => startContestant(name, new URL('ruvllm-contestant.js', import.meta.url), env),
});

export const wasm: Entrant = ours('wasm', null);
export const webgpu: Entrant = ours('webgpu', null);

export const vulkanPeer: Entrant = {
  ...peer,
  name: 'node-llama-cpp (Vulkan)',
  start: () =>
    startContestant('node-llama-cpp (Vulkan)', new URL('llama-cpp-contestant.js', import.meta.url), {
      BENCH_GPU: 'vulkan',
    }),
};

export interface NativeEntrants {
  /** The best build this machine can run; null if there is none. */
  readonly best: Entrant | null;
  readonly byBuild: ReadonlyMap<string, Entrant>;
  /** Why a build does not participate. */
  whyNot(build: string): string;
}

/** The builds of the native kernels, each selected by RUVLLM_NATIVE_BUILD. */
export async function findNativeEntrants(): Promise<NativeEntrants> {
  const { inspectNativeBuilds } = await importBuilt<typeof import('../../src/platform/node/kernels/native-addon.ts')>(
    'platform/node/kernels/native-addon',
  );
  const byBuild = new Map<string, Entrant>();
  const reasons = new Map<string, string>();
  for (const { build, problem } of inspectNativeBuilds()) {
    if (problem === null) byBuild.set(build, ours(`native (${build})`, build, { RUVLLM_NATIVE_BUILD: build }));
    else reasons.set(build, problem.message);
  }
  const [best = null] = byBuild.values();
  return { best, byBuild, whyNot: (build) => reasons.get(build) ?? `no such build on ${process.arch}` };
}

export interface LoadedContestant extends Contestant {
  readonly loadMs: number;
}

/** Starts and loads contestants one after the other, and always stops all of them. */
export async function withContestants<T>(
  entrants: readonly Entrant[],
  request: Omit<LoadRequest, 'do' | 'kernels'>,
  work: (contestants: readonly LoadedContestant[]) => Promise<T>,
): Promise<T> {
  const started: Contestant[] = [];
  try {
    const loaded: LoadedContestant[] = [];
    for (const { start, kernels } of entrants) {
      const contestant = start();
      started.push(contestant);
      const { ms } = await contestant.ask({ do: 'load', ...request, kernels });
      loaded.push({ ...contestant, loadMs: ms });
    }
    return await work(loaded);
  } finally {
    for (const contestant of started) contestant.stop();
  }
}
