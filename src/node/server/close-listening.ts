import type { Server as HttpServer } from 'node:http';

/** What answers the requests of a socket. */
export interface Closable {
  leave(): void;
  shutDown(deadlineMs: number): Promise<void>;
}

/** Part of the shutdown time reserved for error responses and unloading. */
const MAX_GRACE_MS = 1000;
/** Part of the shutdown time for clients that are already waiting to be let in, and the share of a short one. */
const MAX_WAITING_MS = 5000;
const WAITING_SHARE = 0.25;
/** Without a new connection or request for this long, nobody is waiting. */
const QUIET_MS = 100;
/** Node takes one connection from the queue of the system in a turn of its event loop. */
const QUIET_TURNS = 3;

/** Ends a server within `deadlineMs`: takes those who are already waiting, lets requests finish, aborts the rest. */
export async function closeListening(http: HttpServer, closable: Closable, deadlineMs: number): Promise<void> {
  const startMs = performance.now();
  const graceMs = Math.min(MAX_GRACE_MS, deadlineMs / 2);
  closable.leave();
  // The system completes connections before the process takes them: closing the socket would reset them, with their requests.
  await untilQuiet(http, Math.min(MAX_WAITING_MS, deadlineMs * WAITING_SHARE));
  // Keeps listening while requests finish: new requests get a 503 with retry-after, and load balancers notice.
  await closable.shutDown(Math.max(0, deadlineMs - graceMs - (performance.now() - startMs)));
  await untilQuiet(http, graceMs / 4);
  const closed = new Promise<void>((resolve) => http.close(() => resolve()));
  http.closeIdleConnections();
  // Clients that do not read their error would block the shutdown forever.
  const timer = setTimeout(() => http.closeAllConnections(), graceMs / 2);
  await closed;
  clearTimeout(timer);
}

/** Resolves when no connection and no request comes any more, or after `limitMs`. */
async function untilQuiet(http: HttpServer, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs;
  let lastMs = performance.now();
  let numTurns = 0;
  const note = (): void => {
    lastMs = performance.now();
    numTurns = 0;
  };
  http.on('connection', note).on('request', note);
  try {
    for (;;) {
      const isQuiet = performance.now() - lastMs >= QUIET_MS && numTurns >= QUIET_TURNS;
      if (isQuiet || performance.now() >= endMs) return;
      const leftMs = Math.min(lastMs + QUIET_MS, endMs) - performance.now();
      // After a long turn the time may be over although nothing was looked at.
      if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
      else await new Promise((resolve) => setImmediate(resolve)).then(() => numTurns++);
    }
  } finally {
    http.off('connection', note).off('request', note);
  }
}
