import type { Clock } from '../core/clock.ts';

/** An event of a stream; `event` is omitted in formats without names. */
export interface SseMessage {
  readonly event?: string;
  readonly data: string;
}

export interface SseOptions {
  readonly messages: AsyncIterable<SseMessage>;
  /** Aborts the work that produces `messages`; called when the client leaves. */
  readonly abort: () => void;
  /** The last message after a failure, because the status is already sent. */
  readonly toError: (error: unknown) => SseMessage;
  readonly keepAliveMs: number;
  /** Default: a comment, which clients ignore. */
  readonly keepAlive?: SseMessage;
  readonly clock: Clock;
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
  return new Response(createSseStream(options), { headers: HEADERS });
}

function createSseStream(options: SseOptions): ReadableStream<Uint8Array> {
  const { messages, abort, toError, keepAliveMs, clock } = options;
  const encoder = new TextEncoder();
  const alive = encoder.encode(options.keepAlive === undefined ? ': keep-alive\n\n' : formatMessage(options.keepAlive));
  const iterator = messages[Symbol.asyncIterator]();
  let cancelTimer = (): void => {};
  let isOver = false;

  function keepAlive(controller: ReadableStreamDefaultController<Uint8Array>): void {
    cancelTimer();
    cancelTimer = clock.setTimer(keepAliveMs, () => {
      if (isOver) return;
      // With a full queue the client is slow, not the server.
      if ((controller.desiredSize ?? 0) > 0) controller.enqueue(alive);
      keepAlive(controller);
    });
  }

  function end(): void {
    isOver = true;
    cancelTimer();
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        keepAlive(controller);
        try {
          const { value, done } = await iterator.next();
          if (isOver) return;
          if (done !== true) {
            controller.enqueue(encoder.encode(formatMessage(value)));
            return;
          }
        } catch (error) {
          if (isOver) return;
          controller.enqueue(encoder.encode(formatMessage(toError(error))));
          abort();
        }
        end();
        controller.close();
      },
      cancel() {
        end();
        abort();
        iterator.return?.()?.catch(() => {});
      },
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
