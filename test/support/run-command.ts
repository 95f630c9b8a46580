import { readFileSync } from 'node:fs';
import { createFakeIo } from './cli-io.ts';
import { importDist } from './import-dist.ts';

/** The result of a command; `status` is its exit code. */
export interface CommandOutcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/**
 * Runs one command of the built package in this process, because a new process takes a second to start. Signals, pipes
 * and exit codes of real processes are tested in cli.test.ts. Never run two at once: they share the environment.
 */
export async function runCommand(
  args: readonly string[],
  { environment, input = '' }: { environment: NodeJS.ProcessEnv; input?: string | Uint8Array | undefined },
): Promise<CommandOutcome> {
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

/** Key by key, because threads start with the process's variables, not with another object. */
function replaceEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (environment[name] === undefined) delete process.env[name];
  Object.assign(process.env, environment);
}
