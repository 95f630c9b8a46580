import type { ServeFolder, ServeProcess } from '../../../test/support/serve-process.ts';

/** A process that is started again as soon as it ends, as an init system does. */
export interface Supervised {
  readonly name: string;
  /** `kill -9`, then a start. Resolves when the old process is gone. */
  kill(): Promise<void>;
  /** Ends it for good. */
  stop(): Promise<void>;
  /** Exits that nobody asked for. */
  readonly numCrashes: number;
}

/** A `ruvllm` process on a fixed port. Resolves when it has started for the first time. */
export async function superviseRuvllm(
  folder: ServeFolder,
  { name, command, args, onErrorOutput }: { readonly name: string; readonly command: 'serve' | 'gateway'; readonly args: readonly string[]; readonly onErrorOutput: (text: string) => void }, // prettier-ignore
): Promise<Supervised> {
  const stopping = new AbortController();
  let numCrashes = 0;
  let numKills = 0;
  let current: { readonly pid: number; kill(): void; readonly gone: Promise<unknown> } | null = null;
  const launch = (): Promise<ServeProcess> =>
    folder.launch({ command, onErrorOutput, onSpawn: (child) => (current = { pid: child.pid!, kill: () => void child.kill('SIGKILL'), gone: new Promise((resolve) => child.once('exit', resolve)) }) }, ...args); // prettier-ignore
  const run = async (first: (error: Error | null) => void): Promise<void> => {
    while (!stopping.signal.aborted) {
      const killsBefore = numKills;
      try {
        const server = await launch();
        first(null);
        await server.exit;
      } catch (error) {
        first(error as Error);
      }
      if (stopping.signal.aborted || numKills > killsBefore) continue;
      numCrashes++;
      onErrorOutput('ENDED BY ITSELF\n');
    }
  };
  const end = async (): Promise<void> => {
    numKills++;
    const { kill, gone } = current!;
    kill();
    await gone;
  };
  await new Promise<void>((resolve, reject) => void run((error) => (error === null ? resolve() : reject(error))));
  return {
    name,
    kill: end,
    async stop() {
      stopping.abort();
      await end();
    },
    get numCrashes() {
      return numCrashes;
    },
  };
}
