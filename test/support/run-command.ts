import { readFileSync } from 'node:fs';
import { createFakeIo } from './cli-io.ts';
import { importDist } from './import-dist.ts';

/** The result of a command; `status` is its exit code. */
export interface CommandOutcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

// Campaigns and benches run a compiled copy of this file in .cache/tools.
const manifest = new URL('../../package.json', import.meta.url.replace('/.cache/tools/', '/'));
const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };

/**
 * Runs one command of the built package in this process, because a new process takes a second to start. Signals, pipes
 * and exit codes of real processes are tested in cli.test.ts. Commands wait for each other: they share the environment.
 */
export function runCommand(args: readonly string[], options: CommandOptions): Promise<CommandOutcome> {
  const outcome = last.then(() => runNow(args, options));
  last = outcome.catch(() => {});
  return outcome;
}

interface CommandOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly input?: string | Uint8Array | undefined;
}

let last: Promise<unknown> = Promise.resolve();

async function runNow(args: readonly string[], { environment, input = '' }: CommandOptions): Promise<CommandOutcome> {
  const { runCli } = await importDist<typeof import('../../src/cli/run-cli.ts')>('cli/run-cli.js');
  const io = createFakeIo({ environment: environment as Record<string, string> });
  const command = { ...io, folder: process.cwd(), now: () => performance.now() };
  io.stdin.end(input);
  const before = { ...process.env };
  replaceEnvironment(environment);
  try {
    const status = await runCli(args, version, command);
    return { status, ...io.written };
  } finally {
    replaceEnvironment(before);
  }
}

/** `ruvllm serve` or `gateway` in this process. */
export interface ServerHere {
  /** What it prints with `--json` when it is ready. */
  readonly document: Promise<Record<string, unknown>>;
  /** What it has printed to the error output. */
  readonly errorOutput: string;
  /** Ends it as SIGTERM does; returns its exit code. */
  stop(): Promise<number>;
}

const here = { environments: [] as NodeJS.ProcessEnv[], outside: {} as NodeJS.ProcessEnv };

/**
 * Starts a server of the built package in this process. Its environment is that of the process until it has ended, so servers that
 * run at once must have the same.
 */
export function startHere(args: readonly string[], environment: NodeJS.ProcessEnv): ServerHere {
  if (here.environments.some((other) => other !== environment)) throw new Error('another environment is in use here');
  if (here.environments.length === 0) here.outside = { ...process.env };
  here.environments.push(environment);
  replaceEnvironment(environment);
  const io = createFakeIo({ environment: environment as Record<string, string> });
  const command = { ...io, folder: process.cwd(), now: () => performance.now() };
  const serve = async (): Promise<number> => {
    const { runCli } = await importDist<typeof import('../../src/cli/run-cli.ts')>('cli/run-cli.js');
    return runCli([...args, '--json'], version, command);
  };
  const end = serve().finally(() => {
    here.environments.splice(here.environments.indexOf(environment), 1);
    if (here.environments.length === 0) replaceEnvironment(here.outside);
  });
  const started = new Promise<void>((resolve) => {
    const { write } = io.stdout;
    Object.assign(io.stdout, {
      write(text: string) {
        write(text);
        if (io.written.stdout.includes('\n')) resolve();
      },
    });
  });
  const document = Promise.race([started, end]).then(async () => {
    if (!io.written.stdout.includes('"url"')) throw new Error(`it ended with ${await end}: ${io.written.stdout}`);
    return JSON.parse(io.written.stdout) as Record<string, unknown>;
  });
  document.catch(() => {}); // of a start that a test no longer waits for
  return {
    document,
    get errorOutput() {
      return io.written.stderr;
    },
    stop() {
      io.controller.abort('SIGTERM');
      return end;
    },
  };
}

/** Key by key, because threads start with the process's variables, not with another object. */
function replaceEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (environment[name] === undefined) delete process.env[name];
  Object.assign(process.env, environment);
}
