// `ruvllm serve` with its own folders: as a separate process, or in this one.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildRandomModel } from './random-model.ts';
import { type CommandOutcome, runCommand, type ServerHere, startHere } from './run-command.ts';

// Campaigns run a compiled copy of this file in .cache/tools.
const command = fileURLToPath(new URL('../../bin/ruvllm.mjs', import.meta.url.replace('/.cache/tools/', '/')));

export interface Served {
  readonly url: string;
  readonly isOpen: boolean;
  readonly models: string[];
  /** Its memory folder; null: none. */
  readonly memory: string | null;
}

export interface ServeProcess extends Served {
  readonly process: ChildProcess;
  readonly exit: Promise<number | null>;
}

export interface LaunchOptions {
  /** Default `serve`. */
  readonly command?: 'serve' | 'gateway';
  /** A program that starts the server, with its arguments: `strace -f …`. */
  readonly prefix?: readonly string[];
  /** Receives the error output; without it the output is this process's. */
  readonly onErrorOutput?: (text: string) => void;
  /** Called at once, when the process has not yet printed its address. */
  readonly onSpawn?: (child: ChildProcess) => void;
}

export interface ServeFolderOptions {
  readonly contextLength: number;
  /** Where the folder is created; default: the folder for temporary files. */
  readonly parent?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether it has no model of the user, and leaves none behind. Default false. */
  readonly hasOwnHub?: boolean;
}

/** The outcome of `ruvllm keys …`. */
export interface KeysOutcome {
  readonly status: number | null;
  readonly id: string;
  readonly token: string;
  readonly error?: { readonly message: string };
}

export type ServedHere = Served & Pick<ServerHere, 'stop' | 'errorOutput'>;

/**
 * The same in this process, for tests that neither kill a server nor look at its process: a new process takes a second of processor
 * time to load what is already loaded here.
 */
export interface ServeHere {
  start(...args: string[]): Promise<ServedHere>;
  gateway(...args: string[]): Promise<ServedHere>;
  keys(...args: string[]): Promise<KeysOutcome>;
  run(...args: string[]): Promise<CommandOutcome>;
  /** Ends the servers as SIGTERM does. */
  stopAll(): Promise<void>;
}

export interface ServeFolder {
  readonly path: string;
  /** The model `tiny`. */
  readonly model: string;
  readonly data: string;
  readonly environment: NodeJS.ProcessEnv;
  start(...args: string[]): Promise<ServeProcess>;
  launch(options: LaunchOptions, ...args: string[]): Promise<ServeProcess>;
  /** `ruvllm keys …`: its status and JSON output. */
  keys(...args: string[]): KeysOutcome;
  run(...args: string[]): { status: number | null; stdout: string };
  readonly here: ServeHere;
  /** Kills the running processes. */
  killAll(): void;
  dispose(): void;
}

/** Creates a folder with a small random model for all files of the command. */
export function createServeFolder(options: ServeFolderOptions): ServeFolder {
  const { contextLength, parent, environment: more, hasOwnHub = false } = options;
  const folder = mkdtempSync(join(parent ?? tmpdir(), 'ruvllm-serve-'));
  const model = join(folder, 'tiny.gguf');
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape: { contextLength } }));
  const data = join(folder, 'data');
  const environment = {
    ...process.env,
    RUVLLM_DATA_DIR: data,
    RUVLLM_STATE_DIR: join(folder, 'state'),
    RUVLLM_CACHE_DIR: join(folder, 'cache'),
    RUVLLM_KERNELS: 'wasm',
    RUVLLM_HOST: '',
    RUVLLM_PORT: '',
    ...(hasOwnHub ? { HF_HOME: join(folder, 'hub') } : {}),
    ...more,
  };
  const running = new Set<ChildProcess>();
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [command, ...args, '--json'], { env: environment, encoding: 'utf8' });

  async function launch(
    { command: name = 'serve', prefix = [], onErrorOutput, onSpawn }: LaunchOptions,
    ...args: string[]
  ): Promise<ServeProcess> {
    const port = args.includes('--port') ? [] : ['--port', '0'];
    const line = [...prefix, process.execPath, command, name, ...args, ...port, '--json'];
    const child = spawn(line[0]!, line.slice(1), {
      env: environment,
      stdio: ['ignore', 'pipe', onErrorOutput === undefined ? 'inherit' : 'pipe'],
    });
    if (onErrorOutput !== undefined) child.stderr!.setEncoding('utf8').on('data', onErrorOutput);
    running.add(child);
    onSpawn?.(child);
    const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
    let text = '';
    const first = await new Promise<string>((resolve, reject) => {
      child.stdout!.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.includes('\n')) resolve(text);
      });
      void exit.then((code) => reject(new Error(`it ended with ${code}: ${text}`)));
    });
    return { ...(JSON.parse(first) as Omit<ServeProcess, 'process' | 'exit'>), process: child, exit };
  }

  const servers = new Set<ServerHere>();
  async function serveHere(name: 'serve' | 'gateway', args: readonly string[]): Promise<ServedHere> {
    const port = args.includes('--port') ? [] : ['--port', '0'];
    const server = startHere([name, ...args, ...port], environment);
    servers.add(server);
    return {
      ...((await server.document) as unknown as Served),
      get errorOutput() {
        return server.errorOutput;
      },
      stop: () => (servers.delete(server), server.stop()),
    };
  }
  const here: ServeHere = {
    start: (...args) => serveHere('serve', args),
    gateway: (...args) => serveHere('gateway', args),
    async keys(...args) {
      const { stdout, status } = await here.run('keys', ...args);
      return { status, ...(JSON.parse(stdout) as Pick<KeysOutcome, 'id' | 'token'>) };
    },
    run: (...args) => runCommand([...args, '--json'], { environment }),
    async stopAll() {
      const stopping = [...servers].map((server) => server.stop());
      servers.clear();
      await Promise.all(stopping);
    },
  };

  function killAll(): void {
    for (const child of running) child.kill('SIGKILL');
    running.clear();
  }

  return {
    path: folder,
    model,
    data,
    environment,
    start: (...args) => launch({}, ...args),
    launch,
    keys(...args) {
      const { stdout, status } = run('keys', ...args);
      return { status, ...(JSON.parse(stdout) as { id: string; token: string; error?: { message: string } }) };
    },
    run,
    here,
    killAll,
    dispose() {
      killAll();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
