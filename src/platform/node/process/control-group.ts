import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A container's limits; null where none is set or none can be read. */
export interface ControlGroupLimits {
  readonly cpus: number | null;
  readonly memoryLimitBytes: number | null;
  readonly memoryUsedBytes: number | null;
}

/** cgroup v1 writes "no limit" as a page-rounded 2^63; anything above 2^50 means the same. */
const NO_LIMIT_BYTES = 2 ** 50;

type ReadText = (path: string) => string | null;

function readTextOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function toNumber(text: string | null | undefined): number | null {
  if (text === null || text === undefined || !/^\d+\s*$/.test(text)) return null;
  return Number(text);
}

function smaller(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

/** The group folder and all above it: a limit on any ancestor binds. */
function ancestors(root: string, group: string): string[] {
  const parts = group.split('/').filter((part) => part !== '' && part !== '..');
  return Array.from({ length: parts.length + 1 }, (_, count) => join(root, ...parts.slice(0, count)));
}

/** Pages the kernel can drop at once are counted as used by the group but are free to us. */
function reclaimable(read: ReadText, folder: string): number {
  return Number(/^(?:total_)?inactive_file (\d+)$/m.exec(read(join(folder, 'memory.stat')) ?? '')?.[1] ?? 0);
}

/** Reads the limits of the process's own control group, v2 and v1. */
export function readControlGroupLimits(
  root = '/sys/fs/cgroup',
  membershipPath = '/proc/self/cgroup',
  read: ReadText = readTextOrNull,
): ControlGroupLimits {
  let cpus: number | null = null;
  let limit: number | null = null;
  let used: number | null = null;
  const noteMemory = (folder: string, limitFile: string, usedFile: string): void => {
    const bytes = toNumber(read(join(folder, limitFile)));
    if (bytes === null || bytes >= NO_LIMIT_BYTES || (limit !== null && bytes >= limit)) return;
    limit = bytes;
    const current = toNumber(read(join(folder, usedFile)));
    used = current === null ? null : Math.max(0, current - reclaimable(read, folder));
  };
  for (const line of (read(membershipPath) ?? '0::/').split('\n')) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line);
    if (match === null) continue;
    const controllers = match[1]!.split(',');
    const group = match[2]!;
    if (match[1] === '') {
      for (const folder of ancestors(root, group)) {
        const quota = /^(\d+) (\d+)/.exec(read(join(folder, 'cpu.max')) ?? '');
        if (quota !== null) cpus = smaller(cpus, Number(quota[1]) / Number(quota[2]));
        noteMemory(folder, 'memory.max', 'memory.current');
      }
    }
    if (controllers.includes('cpu')) {
      // Mounted under the names of all its controllers; `cpu` alone is a link that not every system makes.
      const mounts = new Set(['cpu', match[1]!]);
      for (const folder of [...mounts].flatMap((mount) => ancestors(join(root, mount), group))) {
        const quota = Number(read(join(folder, 'cpu.cfs_quota_us')) ?? -1);
        const period = toNumber(read(join(folder, 'cpu.cfs_period_us')));
        if (quota > 0 && period !== null && period > 0) cpus = smaller(cpus, quota / period);
      }
    }
    if (controllers.includes('memory')) {
      for (const folder of ancestors(join(root, 'memory'), group)) {
        noteMemory(folder, 'memory.limit_in_bytes', 'memory.usage_in_bytes');
      }
    }
  }
  return { cpus, memoryLimitBytes: limit, memoryUsedBytes: used };
}
