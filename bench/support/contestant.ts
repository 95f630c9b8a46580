import { fork } from 'node:child_process';

/** What a contestant process is asked to do, and what it answers with. */
export type Request =
  | { do: 'load'; path: string; numThreads: number; context: number; kernels: 'native' | 'wasm' }
  | { do: 'prefill'; numTokens: number }
  | { do: 'decode'; numTokens: number; depth: number };
export interface Answer {
  /** Time of the work itself. */
  ms: number;
  /** Resident memory after it. */
  rssBytes: number;
  error?: string;
}

/** An engine in a process of its own, so that memory and crashes are its own too. */
export interface Contestant {
  readonly name: string;
  ask(request: Request): Promise<Answer>;
  stop(): void;
}

export function startContestant(name: string, script: URL): Contestant {
  const child = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
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

/** The child's side: answers each request with the time `work` says it took. */
export function serveRequests(work: (request: Request) => Promise<number>): void {
  process.on('message', (request: Request) => {
    work(request)
      .then((ms): Answer => ({ ms, rssBytes: process.memoryUsage.rss() }))
      .catch((error: unknown): Answer => ({ ms: 0, rssBytes: 0, error: String(error) }))
      .then((answer) => process.send!(answer));
  });
}

/** Prompts that never share a prefix with an earlier one, so that no cache helps anybody. */
export function freshTokens(count: number, vocabSize: number, salt: number): number[] {
  return Array.from({ length: count }, (_, i) => 300 + ((i * 7919 + salt * 104729) % (vocabSize - 400)));
}
