import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { ProcessIdentity } from '../../../hub/platform.ts';
import { errnoOf } from '../files/file-errors.ts';

/** Start time in clock ticks since boot (field 22 of /proc/pid/stat); empty where there is no /proc. */
function startTokenOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses and may hold spaces: count from the last one.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** Whether a process of this host is still the one it was; one of another host is taken to be. */
export function isProcessAlive(identity: ProcessIdentity): boolean {
  if (identity.host !== hostname()) return true;
  try {
    process.kill(identity.pid, 0);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
  }
  const token = startTokenOf(identity.pid);
  return token === '' || identity.startToken === '' || token === identity.startToken;
}

/** Of this process: its number alone may be another's after a restart. */
export function ownIdentity(): ProcessIdentity {
  return { host: hostname(), pid: process.pid, startToken: startTokenOf(process.pid) };
}
