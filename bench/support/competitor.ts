import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Long enough to finish its start-up. */
const HEAD_START_MS = 300;

/** Runs `work` while another process keeps one core busy. */
export async function withCompetitor<T>(work: () => Promise<T>): Promise<T> {
  const competitor = startCompetitor();
  const ended = once(competitor, 'exit');
  try {
    await setTimeout(HEAD_START_MS);
    const result = await work();
    // If the competitor died, this would be an ordinary run under a wrong name.
    if (competitor.exitCode !== null) throw new Error(`the competitor ended with code ${competitor.exitCode}`);
    return result;
  } finally {
    competitor.kill('SIGKILL');
    await ended; // Otherwise it would compete with the next measurement.
  }
}

/** On one core, if the system supports it. */
function startCompetitor(): ChildProcess {
  const busyLoop = [process.execPath, '-e', 'for(;;){}'] as const;
  const core = firstCore();
  const [command, ...args] = core === null ? busyLoop : (['taskset', '-c', core, ...busyLoop] as const);
  return spawn(command, args, { stdio: 'ignore' });
}

function firstCore(): string | null {
  if (process.platform !== 'linux' || spawnSync('taskset', ['--version']).error !== undefined) return null;
  return /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? null;
}
