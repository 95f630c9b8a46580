// `ruvllm fleet …` against nodes of a test, with adapters of its model.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeAdapterFile } from '../../src/adapters/index.ts';
import { createMemorySink, createMemorySource, openGguf, writeGguf } from '../../src/gguf/index.ts';
import { readShape } from '../../src/models/shape.ts';
import { randomAdapter } from './random-adapter.ts';
import type { ServeFolder } from './serve-process.ts';

// Benches run a compiled copy of this file in .cache/tools.
const command = fileURLToPath(new URL('../../bin/ruvllm.mjs', import.meta.url.replace('/.cache/tools/', '/')));

export interface CommandResult {
  readonly status: number | null;
  readonly json: Record<string, unknown>;
  /** Everything it printed. */
  readonly output: string;
}

export interface RunningCommand {
  readonly pid: number;
  readonly end: Promise<CommandResult>;
  /** Resolves when this was printed. */
  printed(text: string): Promise<void>;
}

/** Starts `ruvllm fleet ARGS`; with `--json` it prints no progress. */
export function startFleetCommand({ environment }: ServeFolder, ...args: string[]): RunningCommand {
  const child = spawn(process.execPath, [command, 'fleet', ...args], { env: environment });
  let [stdout, output] = ['', ''];
  const waiters = new Set<() => void>();
  const hear = (text: string): void => {
    output += text;
    for (const wake of waiters) wake();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    hear(text);
  });
  child.stderr.setEncoding('utf8').on('data', hear);
  const end = new Promise<CommandResult>((resolve) =>
    child.on('close', (status) => {
      for (const wake of waiters) wake();
      resolve({ status, json: parseOutput(stdout), output });
    }),
  );
  return {
    pid: child.pid!,
    end,
    async printed(text) {
      while (!output.includes(text)) {
        if (child.exitCode !== null) throw new Error(`it ended without ${text}: ${output}`);
        await new Promise<void>((resolve) => waiters.add(resolve));
      }
    },
  };
}

export function parseOutput(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** A random adapter of the folder's model, as a file. */
export async function writeAdapter(
  folder: ServeFolder,
  name: string,
  seed: number,
  model = folder.model,
): Promise<string> {
  const gguf = openGguf(createMemorySource(readFileSync(model), model));
  const sink = createMemorySink();
  writeGguf(describeAdapterFile(await randomAdapter(readShape(gguf), { seed, strength: 2 })), sink);
  const path = join(folder.path, name);
  writeFileSync(path, sink.toBytes());
  return path;
}

/** A connection to NATS that a test can cut, as a broken network does: no side is told. */
export async function createNatsProxy(url: string) {
  const target = Number(new URL(url).port);
  const sockets = new Set<Socket>();
  let isCut = false;
  let held: (() => void)[] | null = null;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes: Buffer) => {
        if (held !== null) held.push(() => to.write(bytes));
        else if (!isCut) to.write(bytes);
      });
      from.on('error', () => {});
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Everything waits until `release`. */
    hold: () => void (held = []),
    release() {
      for (const send of held ?? []) send();
      held = null;
    },
    cut: () => void (isCut = true),
    heal() {
      isCut = false;
      // What was lost cannot be sent again: the client connects anew.
      for (const socket of sockets) socket.destroy();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
