// A disk that fills up, becomes read-only or returns errors while the server works on it. Reads must go on, writes must be refused (503 or
// 507) rather than lost, and everything must work again by itself.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom, type Random } from '../../src/core/random.ts';
import type { ServeProcess } from '../../test/support/serve-process.ts';
import { createClock, type Part, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { runLoad } from '../support/mixed-load.ts';
import { createOracle, type Oracle } from '../support/oracle.ts';
import { createSite, kill, readHealth, type Site } from '../support/site.ts';
import { createFindings, type Findings, verify } from '../support/verify.ts';

const DISK = '48m';
const FAULT_MS = 1500;
const RECOVERY_LIMIT_MS = 60_000;

interface Fault {
  readonly name: string;
  begin(disk: string, server: ServeProcess): Promise<() => Promise<void>>;
}

/** Until nothing more can be written; the server writes at the same time. */
const fill: Fault = {
  name: 'full disk',
  async begin(disk) {
    const path = join(disk, 'filler');
    const file = openSync(path, 'w');
    const part = Buffer.alloc(65_536);
    try {
      for (;;) writeSync(file, part);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
    return async () => rmSync(path, { force: true });
  },
};
/**
 * strace attaches to the running server and lets system calls fail. Sockets make other calls (write, writev), so only files are
 * concerned.
 */
const inject = (name: string, calls: string, error: string, when: string): Fault => ({
  name,
  async begin(_, server) {
    const args = ['-f', '-q', '-p', String(server.process.pid), '-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}:when=${when}`, '-o', '/dev/null']; // prettier-ignore
    const tracer = spawn('strace', args, { stdio: 'ignore' });
    const ended = new Promise((resolve) => tracer.once('exit', resolve));
    await sleep(300);
    return async () => {
      tracer.kill('SIGINT');
      await ended;
    };
  },
});

const FAULTS: readonly Fault[] = [
  fill,
  // A file system with open files cannot be remounted read-only; this is what its errors are then.
  inject('read-only', 'pwrite64,fsync,fdatasync,ftruncate,rename,link,unlink,mkdir', 'EROFS', '1+'),
  inject('EIO on fsync', 'fsync,fdatasync', 'EIO', '1+'),
  inject('EIO on every third pwrite', 'pwrite64', 'EIO', '1+3'),
  inject('ENOSPC on pwrite', 'pwrite64', 'ENOSPC', '1+'),
  inject('EIO on ftruncate and rename', 'ftruncate,rename', 'EIO', '1+'),
];

interface Tally {
  readonly found: Findings;
  readonly problems: string[];
  readonly refusals: Map<string, number>;
  readonly recoveryMs: number[];
  numFaults: number;
  numRefused: number;
  numMissingAfterRecovery: number;
}

/** While a disk fails, every answer must be an answer: what was stored before is read, or a 503 says that it cannot be. */
async function readDuring(url: string, site: Site, oracle: Oracle, tally: Tally, name: string): Promise<void> {
  for (const [id, { tenant, text }] of [...oracle.records].slice(-10)) {
    const { status, text: stored } = await ask(url, '/admin/memory/get', { token: site.tokens[tenant], body: { id } });
    if (status === 404) tally.problems.push(`${name}: record ${id} answers 404 during the fault`);
    if (status === 200 && !stored.includes(text)) tally.problems.push(`${name}: record ${id} is different during the fault`); // prettier-ignore
  }
}

async function untilRecovered(url: string, site: Site): Promise<number | null> {
  const began = performance.now();
  while (performance.now() - began < RECOVERY_LIMIT_MS) {
    const { status, body } = await ask(url, '/admin/memory/add', { token: site.tokens.bob, body: { text: 'probe' } });
    if (status === 200) {
      await ask(url, '/admin/memory/remove', { token: site.tokens.bob, body: { ids: [body['id']] } });
      const health = await readHealth(url);
      if (health?.degraded.length === 0) return performance.now() - began;
    }
    await sleep(250);
  }
  return null;
}

async function runFault(disk: string, fault: Fault, random: Random, seed: number, tally: Tally): Promise<void> {
  const site = await createSite({ model: 'tiny', parent: disk });
  const oracle = createOracle();
  let number = seed * 1_000_000;
  const refusals = new Map<string, number>();
  const work = async (url: string, ms: number): Promise<void> => {
    const over = new AbortController();
    const load = runLoad({ url, site, oracle, random, nextNumber: () => ++number, refusals }, 4, over.signal);
    await sleep(ms);
    over.abort();
    await load;
  };
  try {
    const server = await site.start();
    await work(server.url, 1000);
    const end = await fault.begin(disk, server);
    try {
      await Promise.all([work(server.url, FAULT_MS), readDuring(server.url, site, oracle, tally, fault.name)]);
    } finally {
      await end();
    }
    const ms = await untilRecovered(server.url, site);
    if (ms === null) tally.problems.push(`${fault.name}: no recovery within ${RECOVERY_LIMIT_MS} ms`);
    else tally.recoveryMs.push(ms);
    await work(server.url, 500);
    // Some of it may still be on its way to the disk.
    const early = createFindings();
    await verify(server.url, site, structuredClone(oracle), early, { random, isWhole: true });
    tally.numMissingAfterRecovery += early.lost.length;
    await sleep(1500);
    await kill(server);
    const again = await site.start();
    await verify(again.url, site, oracle, tally.found, { random, isWhole: true });
    await kill(again);
  } catch (error) {
    tally.problems.push(`${fault.name}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    tally.numFaults++;
    for (const [key, count] of refusals) {
      tally.refusals.set(key, (tally.refusals.get(key) ?? 0) + count);
      tally.numRefused += count;
      if (!/ (?:503|507|429|409|404)$/.test(key)) tally.problems.push(`${fault.name}: ${count} times ${key}`);
    }
    site.dispose();
  }
}

export const disk: Part = {
  name: 'disk',
  summary: 'full and read-only disks, errors of write and fsync',
  whySkipped() {
    if (process.platform !== 'linux') return 'it needs Linux (tmpfs, strace)';
    if (process.getuid?.() !== 0) return 'it needs root to mount a small disk';
    if (spawnSync('strace', ['--version']).status !== 0) {
      console.error('installing strace …');
      if (spawnSync('apt-get', ['install', '-y', '-qq', 'strace']).status !== 0) return 'strace cannot be installed';
    }
    return null;
  },
  async run(options) {
    const clock = createClock(options, FAULTS.length * 3);
    const random = createRandom(options.seed);
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-disk-'));
    const tally: Tally = { found: createFindings(), problems: [], refusals: new Map(), recoveryMs: [], numFaults: 0, numRefused: 0, numMissingAfterRecovery: 0 }; // prettier-ignore
    try {
      while (clock.next()) {
        const small = join(folder, String(clock.rounds));
        mkdirSync(small);
        execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', small]);
        try {
          const fault = FAULTS[(clock.rounds - 1) % FAULTS.length]!;
          await runFault(small, fault, random, clock.rounds, tally);
          options.log(`${fault.name}: ${tally.found.lost.length} lost, ${tally.problems.length} problems so far`);
        } finally {
          spawnSync('umount', ['-l', small]);
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const { found } = tally;
    return {
      figures: {
        faults: tally.numFaults,
        acked_lost: found.lost.length,
        wrong_data: found.wrong.length,
        checked: found.numChecked,
        missing_after_recovery: tally.numMissingAfterRecovery,
        refused_but_written: found.numRefusedWritten,
        refused_writes: tally.numRefused,
        recovery_max_ms: Math.round(Math.max(0, ...tally.recoveryMs)),
        refusals: JSON.stringify(Object.fromEntries(tally.refusals)),
      },
      problems: shorten([
        ...tally.problems,
        ...found.lost.map(({ kind, message }) => `lost ${kind}: ${message}`),
        ...found.wrong.map((message) => `wrong: ${message}`),
      ]),
    };
  },
};
