import type { Exchange } from './route.ts';

/** An event of a stream; `event` is omitted in formats without names. */
export interface SseMessage {
  readonly event?: string;
  readonly data: string;
}

interface StreamOptions<T> extends Pick<Exchange, 'caller' | 'services'> {
  readonly messages: AsyncIterable<T>;
  /** Aborts the work that produces `messages`; called when the client leaves. */
  readonly abort: () => void;
  /** The last message after a failure, because the status is already sent. */
  readonly toError: (error: unknown) => T;
}

export interface SseOptions extends StreamOptions<SseMessage> {
  /** Default: a comment, which clients ignore. */
  readonly keepAlive?: SseMessage;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Otherwise nginx buffers the whole stream.
  'x-accel-buffering': 'no',
};

/**
 * A response that streams `messages`. Each is read when the client has taken the one before, so that a slow client buffers
 * only the tokens of its own answer.
 */
export function createSseResponse(options: SseOptions): Response {
  const alive = options.keepAlive === undefined ? ': keep-alive\n\n' : formatMessage(options.keepAlive);
  return new Response(createStream(options, formatMessage, alive), { headers: HEADERS });
}

/** A response of one JSON object per line. The format has no keep-alive: clients parse each line. */
export function createNdjsonResponse(options: StreamOptions<object>): Response {
  const stream = createStream(options, (value) => `${JSON.stringify(value)}\n`, null);
  return new Response(stream, { headers: { ...HEADERS, 'content-type': 'application/x-ndjson' } });
}

/** How often a stream looks whether its key was revoked: the record of a key is a file. */
const CHECK_KEY_MS = 100;

function createStream<T>(
  options: StreamOptions<T>,
  format: (message: T) => string,
  aliveText: string | null,
): ReadableStream<Uint8Array> {
  const { messages, abort, toError, caller, services } = options;
  const { clock, guard, limits } = services;
  const encoder = new TextEncoder();
  const alive = aliveText === null ? null : encoder.encode(aliveText);
  const iterator = messages[Symbol.asyncIterator]();
  let cancelTimer = (): void => {};
  let isOver = false;
  let nextCheckMs = clock.now() + CHECK_KEY_MS;

  function checkKey(): void {
    if (clock.now() < nextCheckMs) return;
    nextCheckMs = clock.now() + CHECK_KEY_MS;
    guard.checkCaller(caller);
  }

  function keepAlive(controller: ReadableStreamDefaultController<Uint8Array>): void {
    cancelTimer();
    if (alive === null) return;
    cancelTimer = clock.setTimer(limits.keepAliveMs, () => {
      // A response to a closed socket is neither read nor cancelled.
      if (isOver || caller.signal.aborted) return;
      // With a full queue the client is slow, not the server.
      if ((controller.desiredSize ?? 0) > 0) controller.enqueue(alive);
      keepAlive(controller);
    });
  }

  function end(): void {
    isOver = true;
    cancelTimer();
  }

  /** Ends the work, also where the messages themselves would go on. */
  function stop(): void {
    end();
    abort();
    iterator.return?.()?.catch(() => {});
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        keepAlive(controller);
        try {
          const { value, done } = await iterator.next();
          if (isOver) return;
          checkKey();
          if (done !== true) {
            controller.enqueue(encoder.encode(format(value)));
            return;
          }
        } catch (error) {
          if (isOver) return;
          controller.enqueue(encoder.encode(format(toError(error))));
          stop();
        }
        end();
        controller.close();
      },
      cancel: stop,
    },
    { highWaterMark: 4 },
  );
}

/** Data with line breaks needs several fields. */
function formatMessage({ event, data }: SseMessage): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const lines = data.includes('\n') ? data.replaceAll('\n', '\ndata: ') : data;
  return `${name}data: ${lines}\n\n`;
}
