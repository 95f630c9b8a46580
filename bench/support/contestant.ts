import { fork } from 'node:child_process';

export type LoadRequest = {
  do: 'load';
  path: string;
  numThreads: number;
  /** Tokens each sequence may hold. */
  context: number;
  numSequences: number;
  /** Ours only: the name the loaded kernels must report, so that nobody races under a wrong name. */
  kernels: string;
};

/** What a contestant process is asked to do, and what it answers with. */
export type Request =
  | LoadRequest
  | { do: 'prefill'; numTokens: number }
  /** Sequences side by side, `numTokens` each after the first one, which belongs to the prompt of `depth` tokens. */
  | { do: 'decode'; numTokens: number; numSequences: number; depth: number }
  /** From the call to the first token; the median of some repetitions. */
  | { do: 'first-token'; numPrompt: number; repeats: number };

export interface Answer {
  /** Time of the work itself. */
  ms: number;
  /** Tokens of all sequences computed in that time. */
  numTokens: number;
  memory: Memory;
  error?: string;
}

/** Resident memory after the work. */
export interface Memory {
  rssBytes: number;
  /** The part that no file backs; null where the system does not say. */
  anonymousBytes: number | null;
}

/** An engine in a process of its own, so that memory and crashes are its own too. */
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
