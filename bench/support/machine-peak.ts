import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/** 10^9 int8 multiply-adds per second of all threads together; null if the processor has no such instruction. */
export interface PeakSpeeds {
  readonly sdot: number | null;
  readonly vnni: number | null;
  readonly amx: number | null;
}

/** The machine's limits for a number of threads, measured by machine-peak.c. */
export interface MachineProbe {
  /** The best of all measurements so far: lower ones were disturbed. */
  readonly peak: PeakSpeeds;
  /** Measures the peak again, and the read speed of a buffer larger than the model in GB/s. */
  measure(modelBytes: number): number;
}

/** Larger than any cache, so that memory is measured. */
const MIN_STREAM_BYTES = 2 ** 30;

/** Compiled each time: a build for another processor would not run here. A string is the reason why there is none. */
export function startMachineProbe(numThreads: number): MachineProbe | string {
  const program = '.cache/bench/machine-peak';
  const ask = (task: string, ...args: string[]): Record<string, number | null> =>
    JSON.parse(execFileSync(program, [task, String(numThreads), ...args], { encoding: 'utf8' }));
  let peak: PeakSpeeds = { sdot: null, vnni: null, amx: null };
  const better = (a: number | null, b: number | null): number | null => (a === null || b === null ? b : Math.max(a, b));
  const probe: MachineProbe = {
    get peak() {
      return peak;
    },
    measure(modelBytes) {
      const { sdot = null, vnni = null, amx = null } = ask('peak');
      peak = { sdot: better(peak.sdot, sdot), vnni: better(peak.vnni, vnni), amx: better(peak.amx, amx) };
      return ask('stream', String(Math.max(MIN_STREAM_BYTES, modelBytes)))['gigabytesPerSecond']!;
    },
  };
  try {
    mkdirSync('.cache/bench', { recursive: true });
    const flags = ['-O3', '-march=native', 'bench/support/machine-peak.c', '-o', program, '-lpthread'];
    execFileSync(process.env['CC'] ?? 'cc', flags, { stdio: ['ignore', 'ignore', 'pipe'] });
    probe.measure(0);
    return probe;
  } catch (error) {
    return `the machine's peak speed is not measured: ${(error as Error).message.split('\n')[0]}`;
  }
}
