// Parts of a bench one after the other: a failure is reported and does not stop the others.
import { fork } from 'node:child_process';
import { printTable } from '../report.ts';
import { addFindings, type Findings } from './findings.ts';

export interface PartOutcome {
  readonly name: string;
  readonly seconds: number;
  /** Of all threads: about the time on an idle machine. NaN if unknown. */
  readonly cpuSeconds: number;
  /** Null on success. */
  readonly error: string | null;
}

export interface Part {
  readonly name: string;
  /** May have nested parts, which report their own failures. */
  run(): Promise<readonly PartOutcome[] | void>;
}

/** Sent by the process of a part before it ends. */
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
    let nested: readonly PartOutcome[] = [];
    let error: string | null = null;
    try {
      nested = (await run()) ?? [];
      error = failuresOf(nested) || null;
    } catch (thrown) {
      error = messageOf(thrown);
      console.error(`error: ${name}: ${thrown instanceof Error ? (thrown.stack ?? error) : error}`);
    }
    const { user, system } = process.cpuUsage(cpu);
    outcomes.push({ name, seconds: (performance.now() - began) / 1000, cpuSeconds: (user + system) / 1e6, error });
    outcomes.push(...nested.map((one) => ({ ...one, name: `${name}, ${one.name}` })));
  }
  return outcomes;
}

/**
 * Runs the same program with other arguments in a separate process: crashes, leaks and leftover threads do not affect the next part,
 * and no timing depends on earlier compilation. Resolves with its message; an exit without one is an error.
 */
export async function runInProcess(file: string, args: readonly string[]): Promise<PartMessage> {
  const child = fork(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let sent: PartMessage | null = null;
  child.on('message', (message) => (sent = message as PartMessage));
  const end = await new Promise<string>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(signal ?? `code ${code}`));
  });
  if (sent === null) throw new Error(`its process ended with ${end} without a result`);
  return sent;
}

/** Each part with `--part` in a separate process; results before a failure count. */
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
      // A figure it did not measure belongs to another part.
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
