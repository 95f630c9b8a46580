// Processor time of this process and of those that it started and that have ended. Node alone tells that of itself only.
import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second, on every processor that Node runs on. */
const TICK_MS = 10;

export function processorMs() {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
    // utime, stime, cutime, cstime: fields 14 to 17 of proc(5).
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
  } catch {
    const { user, system } = process.cpuUsage();
    return Math.round((user + system) / 1000);
  }
}
