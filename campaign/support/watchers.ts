// Clients that ask for the live events of a server and then only hold their connections.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Watchers {
  /** Connections that have an event stream, and those that were told to come later. */
  readonly counts: { readonly streaming: number; readonly refused: number };
  /** Ends them; the sentences say which were treated wrongly. */
  stop(): readonly string[];
}

const RETRY_MS = 200;
const OPEN_LIMIT_MS = 60_000;
/** Of this process and of the server, for everything else. */
const OTHER_FILES = 500;

/** Why this process may not hold so many connections; null: it may. */
export function whyTooMany(count: number): string | null {
  let limit = Infinity;
  try {
    limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
  } catch {
    // only Linux tells
  }
  return count + OTHER_FILES <= limit ? null : `${count} connections and a limit of ${limit} open files`;
}

/** Resolves when each connection has its stream, or was refused once. A refused one stays open, and asks again when it is closed. */
export async function holdWatchers(url: string, token: string, count: number): Promise<Watchers> {
  const { hostname, port, host } = new URL(url);
  const request = `GET /admin/live/events?interval_ms=60000 HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`;
  const problems: string[] = [];
  const sockets = new Set<Socket>();
  const answered = new Set<number>();
  const streaming = new Set<number>();
  const over = new AbortController();

  async function hold(number: number): Promise<void> {
    while (!over.signal.aborted) {
      const socket = connect(Number(port), hostname);
      sockets.add(socket);
      const closed = once(socket, 'close').catch(() => {});
      socket.on('error', () => {}); // too many connections for the moment; tried again
      socket.write(request);
      const [first] = (await Promise.race([once(socket, 'data'), closed.then(() => [])]).catch(() => [])) as Buffer[];
      const status = /^HTTP\/1\.1 (\d{3})/.exec(String(first ?? ''))?.[1];
      if (status === '200') streaming.add(number);
      else if (status !== undefined && status !== '429' && status !== '503') problems.push(`a watcher got ${status}`);
      if (status !== undefined) answered.add(number);
      socket.resume();
      await closed;
      sockets.delete(socket);
      if (!over.signal.aborted && status === '200') problems.push('an event stream was cut');
      streaming.delete(number);
      await sleep(RETRY_MS);
    }
  }

  for (let number = 0; number < count; number++) void hold(number);
  const began = performance.now();
  while (answered.size < count && performance.now() - began < OPEN_LIMIT_MS) await sleep(20);
  if (answered.size < count) problems.push(`${count - answered.size} of ${count} watchers got no answer`);
  return {
    get counts() {
      return { streaming: streaming.size, refused: sockets.size - streaming.size };
    },
    stop() {
      over.abort();
      for (const socket of sockets) socket.destroy();
      return problems;
    },
  };
}
