// A PostgreSQL of the machine, where there is one: several sessions, time limits and restarts, which the one in WebAssembly lacks.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const PASSWORD = 'Pa55/wörd:secret';

export interface TestServer {
  readonly connectionString: string;
  stop(): Promise<void>;
}

export interface MachineServer extends TestServer {
  kill(): Promise<void>;
  /** `kill -9` of all its processes. */
  killAll(): Promise<void>;
  start(): Promise<void>;
  /** As the administrator. */
  run(sql: string): string;
}

const DEBIAN = '/usr/lib/postgresql';

/** The folder of `initdb` and `postgres`, or null. */
export function findPostgres(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ];
  const isWhole = (folder: string): boolean => ['initdb', 'postgres', 'psql'].every((name) => existsSync(join(folder, name))); // prettier-ignore
  return folders.find((folder) => isWhole(folder) && ownerOf() !== null) ?? null;
}

/** PostgreSQL refuses to run as root; its package brings a user. */
function ownerOf(): { uid?: number; gid?: number } | null {
  if (process.getuid?.() !== 0) return {};
  try {
    const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { stdio: 'pipe' }).toString());
    return { uid: idOf('-u'), gid: idOf('-g') };
  } catch {
    return null;
  }
}

export async function startMachineServer(bin: string): Promise<MachineServer> {
  const owner = ownerOf()!;
  const root = mkdtempSync(join(tmpdir(), 'ruvllm-postgres-'));
  const passwordFile = join(root, 'password');
  writeFileSync(passwordFile, PASSWORD);
  if (owner.uid !== undefined) for (const path of [root, passwordFile]) chownSync(path, owner.uid, owner.gid!);
  const data = join(root, 'data');
  const options = { ...owner, cwd: root, stdio: 'pipe' } as const;
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8', '--no-sync'], options); // prettier-ignore
  const port = await freePort();
  let child: ChildProcess;

  const run = (sql: string): string =>
    execFileSync(join(bin, 'psql'), ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'postgres', '-Atqc', sql], {
      ...options,
      env: { ...process.env, PGPASSWORD: PASSWORD },
    }).toString();

  async function start(): Promise<void> {
    child = spawn(join(bin, 'postgres'), ['-D', data, '-p', `${port}`, '-k', root, '-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off'], { ...options, stdio: 'ignore' }); // prettier-ignore
    for (let attempt = 0; ; attempt++) {
      try {
        run('SELECT 1');
        return;
      } catch (error) {
        if (attempt === 600) throw error;
        await sleep(100);
      }
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }

  await start();
  return {
    connectionString: `postgres://postgres:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`,
    start,
    run,
    kill: () => end('SIGQUIT'), // at once, as in a crash
    async killAll() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      // Stopped first: it would start new children, and the last of them would hold its shared memory.
      child.kill('SIGSTOP');
      const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)])
        .toString()
        .trim()
        .split(/\s+/);
      for (const pid of children) process.kill(Number(pid), 'SIGKILL');
      child.kill('SIGKILL');
      await ended;
    },
    async stop() {
      await end('SIGINT');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Below the ephemeral ports: while the server is down, no other process gets its port by chance. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + randomInt(10_000);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer()
        .once('error', () => resolve(false))
        .listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
