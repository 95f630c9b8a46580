import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { resolveModelConfig } from '../../../runtime/model-config.ts';
import { readControlGroupLimits } from './control-group.ts';
import { combineLimits, parseCpuFeatures, readSystemInfo } from './system-info.ts';

const GiB = 2 ** 30;
const reading = (files: Record<string, string>) => (path: string) => files[path] ?? null;

describe('readControlGroupLimits', () => {
  test('v2: the tightest of the group and its ancestors; pages that can be dropped are free', () => {
    const read = reading({
      '/proc/self/cgroup': '0::/a/b\n',
      '/cg/a/cpu.max': '150000 100000\n',
      '/cg/a/b/cpu.max': 'max 100000\n',
      '/cg/a/memory.max': `${4 * GiB}\n`,
      '/cg/a/memory.current': `${3 * GiB}\n`,
      '/cg/a/memory.stat': `anon 5\ninactive_file ${GiB}\n`,
      '/cg/a/b/memory.max': 'max\n',
    });
    expect(readControlGroupLimits('/cg', '/proc/self/cgroup', read)).toEqual({
      cpus: 1.5,
      memoryLimitBytes: 4 * GiB,
      memoryUsedBytes: 2 * GiB,
    });
  });

  test('v1, mounted at the root of the container', () => {
    const read = reading({
      '/proc/self/cgroup': '4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n',
      '/cg/cpu/cpu.cfs_quota_us': '50000\n',
      '/cg/cpu/cpu.cfs_period_us': '100000\n',
      '/cg/memory/memory.limit_in_bytes': `${GiB}\n`,
      '/cg/memory/memory.usage_in_bytes': '1000\n',
    });
    expect(readControlGroupLimits('/cg', '/proc/self/cgroup', read)).toEqual({
      cpus: 0.5,
      memoryLimitBytes: GiB,
      memoryUsedBytes: 1000,
    });
  });

  test('v1 without the short name of its mount', () => {
    const read = reading({
      '/p': '3:cpu,cpuacct:/docker/x\n',
      '/cg/cpu,cpuacct/docker/cpu.cfs_quota_us': '300000\n',
      '/cg/cpu,cpuacct/docker/cpu.cfs_period_us': '100000\n',
    });
    expect(readControlGroupLimits('/cg', '/p', read).cpus).toBe(3);
  });

  test('no limit: v1 says 2^63, v2 says max, elsewhere nothing is there', () => {
    const none = { cpus: null, memoryLimitBytes: null, memoryUsedBytes: null };
    expect(readControlGroupLimits('/cg', '/p', () => null)).toEqual(none);
    const read = reading({
      '/p': '4:memory:/\n3:cpu:/\n',
      '/cg/memory/memory.limit_in_bytes': '9223372036854771712\n',
      '/cg/cpu/cpu.cfs_quota_us': '-1\n',
      '/cg/cpu/cpu.cfs_period_us': '100000\n',
    });
    expect(readControlGroupLimits('/cg', '/p', read)).toEqual(none);
  });
});

test('limits lie over the host', () => {
  const host = { numCpus: 8, totalMemoryBytes: 16 * GiB, freeMemoryBytes: 10 * GiB };
  expect(combineLimits(host, { cpus: null, memoryLimitBytes: null, memoryUsedBytes: null })).toEqual({
    numCpus: 8,
    totalMemoryBytes: 16 * GiB,
    availableMemoryBytes: 10 * GiB,
  });
  expect(combineLimits(host, { cpus: 1.5, memoryLimitBytes: 4 * GiB, memoryUsedBytes: GiB })).toEqual({
    numCpus: 2,
    totalMemoryBytes: 4 * GiB,
    availableMemoryBytes: 3 * GiB,
  });
  expect(combineLimits(host, { cpus: 0.1, memoryLimitBytes: GiB, memoryUsedBytes: 2 * GiB })).toEqual({
    numCpus: 1,
    totalMemoryBytes: GiB,
    availableMemoryBytes: 0,
  });
});

test('CPU features of x86 and ARM', () => {
  expect(parseCpuFeatures('model name\t: X\nflags\t\t: sse avx2 avx2 fpu\nbugs: x\n')).toEqual(['avx2', 'fpu', 'sse']);
  expect(parseCpuFeatures('Features\t: fp asimd asimddp\n')).toEqual(['asimd', 'asimddp', 'fp']);
  expect(parseCpuFeatures('')).toEqual([]);
});

test('this machine makes sense', () => {
  const info = readSystemInfo();
  expect(info.numCpus).toBeGreaterThanOrEqual(1);
  expect(info.availableMemoryBytes).toBeGreaterThan(0);
  expect(info.availableMemoryBytes).toBeLessThanOrEqual(info.totalMemoryBytes);
  expect(info.cpuModel).not.toBe('');
});

/** The number of threads a model would get in a container with these files. */
function threadsWith(files: Record<string, string>): number {
  const root = mkdtempSync(join(tmpdir(), 'ruvllm-cgroup-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const { numCpus } = readSystemInfo(readControlGroupLimits(root, join(root, 'membership')));
    return resolveModelConfig(undefined, { numCpus }).numThreads;
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('a model gets as many threads as its container has processors', () => {
  const all = availableParallelism();
  expect(threadsWith({})).toBe(all);
  expect(threadsWith({ membership: '0::/app\n', 'app/cpu.max': 'max 100000\n' })).toBe(all);
  expect(threadsWith({ membership: '0::/app\n', 'app/cpu.max': '100000 100000\n' })).toBe(1);
  expect(threadsWith({ membership: '0::/app/job\n', 'app/cpu.max': '20000 100000\n' })).toBe(1);
  expect(threadsWith({ membership: '0::/app\n', 'app/cpu.max': '110000 100000\n' })).toBe(Math.min(all, 2));
  const v1 = { membership: '5:cpu:/\n', 'cpu/cpu.cfs_quota_us': '100000\n', 'cpu/cpu.cfs_period_us': '100000\n' };
  expect(threadsWith(v1)).toBe(1);
});

const canPin = spawnSync('taskset', ['-c', '0', 'true']).status === 0;
if (!canPin) console.log('no taskset here: threads by affinity are not tested');
test.skipIf(!canPin)('and no more than it is pinned to', () => {
  const program = "process.stdout.write(String(require('node:os').availableParallelism()))";
  expect(spawnSync('taskset', ['-c', '0', process.execPath, '-e', program], { encoding: 'utf8' }).stdout).toBe('1');
});
