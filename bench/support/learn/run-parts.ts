// Parts of a bench one after the other: what one breaks is told, and is not the end of the others.
import { fork } from 'node:child_process';
import { printTable } from '../report.ts';
import type { Findings } from './findings.ts';

export interface Part {
  readonly name: string;
  run(): Promise<void>;
}

export interface PartOutcome {
  readonly name: string;
  readonly seconds: number;
  /** Null where it went well. */
  readonly error: string | null;
}

/** What the process of a part sends before it ends. */
export interface PartMessage {
  readonly findings: Findings;
  readonly outcomes: readonly PartOutcome[];
}

export async function runParts(parts: readonly Part[], log: (line: string) => void): Promise<PartOutcome[]> {
  const outcomes: PartOutcome[] = [];
  for (const { name, run } of parts) {
    log(`${name} …`);
    const began = performance.now();
    let error: string | null = null;
    try {
      await run();
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown);
      console.error(`error: ${name}: ${thrown instanceof Error ? (thrown.stack ?? error) : error}`);
    }
    outcomes.push({ name, seconds: (performance.now() - began) / 1000, error });
  }
  return outcomes;
}

/** Thrown by a part whose own parts failed in part. */
export function throwFailed(outcomes: readonly PartOutcome[]): void {
  const failed = outcomes.filter(({ error }) => error !== null);
  if (failed.length > 0) throw new Error(failed.map(({ name, error }) => `${name}: ${error}`).join('; '));
}

/**
 * The same program with other arguments, in a process of its own: a crash, a leak or a thread that is left over is not the next
 * one's, and no timing depends on what was compiled before. Resolves with what it sent; an end without it is an error.
 */
export async function runInProcess(file: string, args: readonly string[]): Promise<PartMessage> {
  const child = fork(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let sent: PartMessage | null = null;
  child.on('message', (message) => (sent = message as PartMessage));
  const end = await new Promise<string>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(signal ?? `code ${code}`));
  });
  if (sent === null) throw new Error(`its process ended with ${end} before it had told anything`);
  return sent;
}

export function showOutcomes(outcomes: readonly PartOutcome[]): void {
  printTable([
    ['part', 'seconds', ''],
    ...outcomes.map(({ name, seconds, error }) => [
      name,
      seconds.toFixed(0),
      error === null ? 'ok' : `failed: ${error}`,
    ]),
  ]);
}
