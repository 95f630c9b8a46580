import * as nodeFiles from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import type { KernelSpeed } from '../../../../kernels/measure-kernels.ts';
import { stateFolder } from '../../files/paths.ts';
import { readWhole, replaceFile } from '../../sealing/atomic-files.ts';

const MAX_BYTES = 4 << 20;
/** The oldest are forgotten: a machine sees few models. */
const MAX_RECORDS = 1000;

/** A measurement of one kind of kernels on one machine, with the matrices of one model. */
export interface SpeedRecord extends KernelSpeed {
  /** Processor, cores and memory; records of another machine do not count. */
  readonly machine: string;
  readonly kernels: string;
  readonly numThreads: number;
  /** See `describeShape`. */
  readonly shape: string;
  readonly measuredMs: number;
}

export function describeMachine(): string {
  const [first] = cpus();
  return `${process.arch} ${first?.model ?? 'unknown'} x${cpus().length} ${Math.round(totalmem() / 2 ** 30)} GiB`;
}

export const defaultHistoryPath = (): string => join(stateFolder(), 'kernel-speeds.json');

/** A damaged file is an empty one: speeds can be measured again. */
export function readSpeeds(path = defaultHistoryPath()): SpeedRecord[] {
  try {
    const bytes = readWhole(nodeFiles, path, MAX_BYTES);
    const records = JSON.parse(new TextDecoder().decode(bytes!)) as SpeedRecord[];
    return Array.isArray(records) ? records.filter(isRecord) : [];
  } catch {
    return [];
  }
}

function isRecord(value: unknown): value is SpeedRecord {
  const record = value as SpeedRecord | null;
  return (
    typeof record === 'object' &&
    record !== null &&
    [record.machine, record.kernels, record.shape].every((text) => typeof text === 'string') &&
    [record.decodeMs, record.promptMs, record.numThreads, record.measuredMs].every(
      (ms) => Number.isFinite(ms) && ms >= 0,
    )
  );
}

const isSame = (a: SpeedRecord, b: SpeedRecord): boolean =>
  a.machine === b.machine && a.kernels === b.kernels && a.shape === b.shape && a.numThreads === b.numThreads;

/** Adds measurements; an older one of the same is replaced. */
export function addSpeeds(added: readonly SpeedRecord[], path = defaultHistoryPath()): void {
  const others = readSpeeds(path).filter((record) => !added.some((one) => isSame(one, record)));
  const records = [...others, ...added].slice(-MAX_RECORDS);
  replaceFile(nodeFiles, path, [new TextEncoder().encode(`${JSON.stringify(records, null, 1)}\n`)], false);
}
