// NATS with JetStream from Debian's package, in a folder of its own.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const hasNats = spawnSync('nats-server', ['--version']).status === 0;
if (!hasNats) console.log('skipped: tests of a fleet over NATS need nats-server');

export interface NatsServer {
  readonly url: string;
  /** Starts it on the same port; `isEmpty`: without its disk. */
  start(options?: { readonly isEmpty?: boolean }): void;
  /** Resolves when it accepts connections: commands that need it do not wait for it. */
  untilUp(): Promise<void>;
  /** As kill -9 does. */
  kill(): Promise<void>;
  dispose(): Promise<void>;
}

export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Is not started yet: processes of a fleet must not depend on the order. */
export async function createNatsServer(): Promise<NatsServer> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-nats-'));
  const port = await findFreePort();
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    const running = child;
    child = null;
    if (running === null || running.exitCode !== null) return;
    const exit = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGKILL');
    await exit;
  };
  return {
    url: `nats://127.0.0.1:${port}`,
    start({ isEmpty = false } = {}) {
      if (isEmpty) rmSync(join(folder, 'store'), { recursive: true, force: true });
      const args = ['--addr', '127.0.0.1', '--port', String(port), '--jetstream', '--store_dir', join(folder, 'store')];
      child = spawn('nats-server', args, { stdio: 'ignore' });
    },
    async untilUp() {
      const isUp = (): Promise<boolean> =>
        new Promise((resolve) => {
          const socket = connect(port, '127.0.0.1', () => {
            socket.destroy();
            resolve(true);
          }).on('error', () => resolve(false));
        });
      while (!(await isUp())) await sleep(10);
    },
    kill,
    async dispose() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
