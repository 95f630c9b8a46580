import type { Clock } from '../core/clock.ts';

/** One event of a stream as it is written; `event` is left out where the format has no names. */
export interface SseMessage {
  readonly event?: string;
  readonly data: string;
}

export interface SseOptions {
  readonly messages: AsyncIterable<SseMessage>;
  /** Ends the work behind `messages`: called when the client leaves. */
  readonly abort: () => void;
  /** The message that says what went wrong in the middle; the status was sent long ago. */
  readonly toError: (error: unknown) => SseMessage;
  readonly keepAliveMs: number;
  /** What breaks the silence; default: a comment, which no client sees. */
  readonly keepAlive?: SseMessage;
  readonly clock: Clock;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // nginx would hold the stream back until it ends.
  'x-accel-buffering': 'no',
};

/**
 * A response that streams `messages`. They are read one at a time, when the client has taken the last: a slow client holds
 * nothing here, and behind it never more than the tokens of its own answer.
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
      // A full queue says that the client is slow, not that we are.
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

/** Line breaks end a field, so data with line breaks takes several. */
function formatMessage({ event, data }: SseMessage): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const lines = data.includes('\n') ? data.replaceAll('\n', '\ndata: ') : data;
  return `${name}data: ${lines}\n\n`;
}
