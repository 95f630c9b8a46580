// Parts of a bench one after the other: what one breaks is told, and is not the end of the others.
import { fork } from 'node:child_process';
import { printTable } from '../report.ts';
import { addFindings, type Findings } from './findings.ts';

export interface PartOutcome {
  readonly name: string;
  readonly seconds: number;
  /** Of all threads: what it would have been about on a machine with nothing else to do. NaN where nobody told. */
  readonly cpuSeconds: number;
  /** Null where it went well. */
  readonly error: string | null;
}

export interface Part {
  readonly name: string;
  /** May have parts of its own, which failed where theirs say so. */
  run(): Promise<readonly PartOutcome[] | void>;
}

/** What the process of a part sends before it ends. */
export interface PartMessage {
  readonly findings: Findings;
  readonly outcomes: readonly PartOutcome[];
}

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

const failuresOf = (outcomes: readonly PartOutcome[]): string =>
  outcomes.flatMap(({ name, error }) => (error === null ? [] : [`${name}: ${error}`])).join('; ');

export async function runParts(parts: readonly Part[], log: (line: string) => void): Promise<PartOutcome[]> {
  const outcomes: PartOutcome[] = [];
  for (const { name, run } of parts) {
    log(`${name} …`);
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    let own: readonly PartOutcome[] = [];
    let error: string | null = null;
    try {
      own = (await run()) ?? [];
      error = failuresOf(own) || null;
    } catch (thrown) {
      error = messageOf(thrown);
      console.error(`error: ${name}: ${thrown instanceof Error ? (thrown.stack ?? error) : error}`);
    }
    const { user, system } = process.cpuUsage(cpu);
    outcomes.push({ name, seconds: (performance.now() - began) / 1000, cpuSeconds: (user + system) / 1e6, error });
    outcomes.push(...own.map((one) => ({ ...one, name: `${name}, ${one.name}` })));
  }
  return outcomes;
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

/** Each part by `--part` in a process of its own; what a part measured before it failed counts. */
export async function runPartsApart(
  program: { readonly file: string; readonly args: readonly string[] },
  names: readonly string[],
  findings: Findings,
  log: (line: string) => void,
): Promise<PartOutcome[]> {
  const outcomes: PartOutcome[] = [];
  for (const name of names) {
    log(`${name} …`);
    const began = performance.now();
    try {
      const message = await runInProcess(program.file, [...program.args, '--part', name]);
      // A figure it did not measure is another part's.
      const figures = Object.fromEntries(
        Object.entries(message.findings.figures).filter(([, value]) => value !== null),
      );
      addFindings(findings, { figures, rows: message.findings.rows });
      outcomes.push(...message.outcomes);
    } catch (thrown) {
      console.error(`error: ${name}: ${messageOf(thrown)}`);
      outcomes.push({ name, seconds: (performance.now() - began) / 1000, cpuSeconds: NaN, error: messageOf(thrown) });
    }
  }
  return outcomes;
}

export function showOutcomes(outcomes: readonly PartOutcome[]): void {
  printTable([
    ['part', 'seconds', 'of a core', ''],
    ...outcomes.map(({ name, seconds, cpuSeconds, error }) => [
      name,
      seconds.toFixed(0),
      Number.isFinite(cpuSeconds) ? cpuSeconds.toFixed(0) : '–',
      error === null ? 'ok' : `failed: ${error}`,
    ]),
  ]);
}
