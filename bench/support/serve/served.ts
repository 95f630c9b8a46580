import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Measured, ServedAnswer, ServedKind, ServedRequest } from './protocol.ts';

/** A server in a separate process. */
export interface Served {
  readonly port: number;
  /** Null: none required. */
  readonly token: string | null;
  /** The current state. */
  look(): Promise<Measured>;
  /** After garbage collection, with all delays recorded. */
  measure(): Promise<Measured>;
  stop(): Promise<void>;
}

export async function startServed(what: ServedKind): Promise<Served> {
  const child = fork(new URL('./server-process.js', import.meta.url), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: ['--expose-gc'],
  });
  const ended = once(child, 'exit');

  async function ask(request: ServedRequest): Promise<ServedAnswer> {
    child.send(request);
    const [answer] = (await Promise.race([
      once(child, 'message'),
      ended.then(([code]) => Promise.reject(new Error(`the server ended with code ${code}`))),
    ])) as [ServedAnswer];
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }

  const { port, token } = await ask({ do: 'start', what });
  return {
    port: port!,
    token: token ?? null,
    look: async () => (await ask({ do: 'measure', collect: false })).measured!,
    measure: async () => (await ask({ do: 'measure', collect: true })).measured!,
    async stop() {
      child.send({ do: 'stop' } satisfies ServedRequest);
      await ended;
    },
  };
}
