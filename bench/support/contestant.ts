import { fork } from 'node:child_process';

export type LoadRequest = {
  do: 'load';
  path: string;
  numThreads: number;
  /** Tokens per sequence. */
  context: number;
  numSequences: number;
  /** Only for ours: the required name of the loaded kernels, so that none runs under a wrong name. */
  kernels: string;
  /** Only for ours on a GPU: layers there; default as many as fit. */
  gpuLayers?: number;
};

/** Requests to a contestant process. */
export type Request =
  | LoadRequest
  | { do: 'prefill'; numTokens: number }
  /** Concurrent sequences with `numTokens` each after the first one, which belongs to the prompt of `depth` tokens. */
  | { do: 'decode'; numTokens: number; numSequences: number; depth: number }
  /** From the call to the first token; the median of several repetitions. */
  | { do: 'first-token'; numPrompt: number; repeats: number };

export interface Answer {
  /** Time of the work alone. */
  ms: number;
  /** Tokens of all sequences in that time. */
  numTokens: number;
  memory: Memory;
  error?: string;
}

/** Resident memory after the work. */
export interface Memory {
  rssBytes: number;
  /** The part not backed by a file; null if the system does not report it. */
  anonymousBytes: number | null;
}

/** An engine in a separate process, which isolates memory and crashes. */
export interface Contestant {
  readonly name: string;
  ask(request: Request): Promise<Answer>;
  stop(): void;
}

export function startContestant(name: string, script: URL, env: Record<string, string> = {}): Contestant {
  const child = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { ...process.env, ...env } });
  return {
    name,
    ask: (request) =>
      new Promise((resolve, reject) => {
        const onExit = (code: number | null): void => reject(new Error(`${name} ended with code ${code}`));
        child.once('exit', onExit);
        child.once('message', (answer: Answer) => {
          child.off('exit', onExit);
          if (answer.error === undefined) resolve(answer);
          else reject(new Error(`${name}: ${answer.error}`));
        });
        child.send(request);
      }),
    stop: () => child.kill(),
  };
}
