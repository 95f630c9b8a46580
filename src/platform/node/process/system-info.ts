import { readFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, freemem, platform, release, totalmem } from 'node:os';
import { readControlGroupLimits, type ControlGroupLimits } from './control-group.ts';

/** What the machine gives to this process, container limits counted. */
export interface SystemInfo {
  readonly system: string;
  readonly release: string;
  readonly architecture: string;
  readonly cpuModel: string;
  /** Instruction-set names as the kernel spells them; empty where they cannot be read without native code. */
  readonly cpuFeatures: readonly string[];
  /** CPUs this process may keep busy: affinity and quota counted, at least 1. */
  readonly numCpus: number;
  readonly cpuQuota: number | null;
  readonly totalMemoryBytes: number;
  /** What can still be allocated without swapping or being killed. */
  readonly availableMemoryBytes: number;
  readonly memoryLimitBytes: number | null;
}

/** The machine's own numbers, before container limits. */
export interface HostNumbers {
  readonly numCpus: number;
  readonly totalMemoryBytes: number;
  readonly freeMemoryBytes: number;
}

/** Feature names from /proc/cpuinfo: `flags` on x86, `Features` on ARM; sorted, once each. */
export function parseCpuFeatures(cpuInfo: string): string[] {
  const line = /^(?:flags|Features)[ \t]*:(.*)$/m.exec(cpuInfo)?.[1] ?? '';
  return [...new Set(line.split(/\s+/).filter((word) => word !== ''))].sort();
}

/** Container limits laid over the host's numbers; a quota of 1.5 CPUs can keep 2 threads busy part of the time. */
export function combineLimits(
  host: HostNumbers,
  group: ControlGroupLimits,
): Pick<SystemInfo, 'numCpus' | 'totalMemoryBytes' | 'availableMemoryBytes'> {
  const quota = group.cpus === null ? Infinity : Math.max(1, Math.ceil(group.cpus));
  const limit = group.memoryLimitBytes ?? Infinity;
  const left = limit === Infinity ? Infinity : Math.max(0, limit - (group.memoryUsedBytes ?? 0));
  return {
    numCpus: Math.max(1, Math.min(host.numCpus, quota)),
    totalMemoryBytes: Math.min(host.totalMemoryBytes, limit),
    availableMemoryBytes: Math.min(host.freeMemoryBytes, left),
  };
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Looks at the machine now; a few small file reads, no child process. */
export function readSystemInfo(group: ControlGroupLimits = readControlGroupLimits()): SystemInfo {
  // availableParallelism() counts the affinity mask, which a cpuset narrows too; quotas are ours to count.
  // os.freemem() is MemAvailable on Linux with libuv of Node 20; on macOS it is only the free list, so it errs low.
  const host = { numCpus: availableParallelism(), totalMemoryBytes: totalmem(), freeMemoryBytes: freemem() };
  const cpuInfo = readOrEmpty('/proc/cpuinfo');
  const model = cpus()[0]?.model.trim() ?? '';
  return {
    system: platform(),
    release: release(),
    architecture: arch(),
    cpuModel:
      model === '' || model === 'unknown' ? (/^model name[ \t]*:(.*)$/m.exec(cpuInfo)?.[1]?.trim() ?? arch()) : model,
    cpuFeatures: parseCpuFeatures(cpuInfo),
    cpuQuota: group.cpus,
    memoryLimitBytes: group.memoryLimitBytes,
    ...combineLimits(host, group),
  };
}
