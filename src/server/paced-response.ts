import type { Clock } from '../core/clock.ts';

export interface PacedOptions {
  readonly contentType: string;
  readonly clock: Clock;
  /** Aborts when the client leaves: a response to a closed socket is neither read nor cancelled. */
  readonly signal: AbortSignal;
  /** Called once, when the response is complete or the client has left. */
  readonly onEnd: () => void;
}

/** A response whose pieces are produced as the client reads them, with a pause before each to serve other requests. */
export function pacedResponse(pieces: Iterable<string>, { contentType, clock, signal, onEnd }: PacedOptions): Response {
  const end = (): void => {
    signal.removeEventListener('abort', end);
    onEnd();
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  const encoder = new TextEncoder();
  const iterator = pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Otherwise a fast client would block all other requests.
        await new Promise<void>((resolve) => clock.setTimer(0, resolve));
        try {
          const { value, done } = iterator.next();
          if (done !== true) return controller.enqueue(encoder.encode(value));
        } catch (error) {
          end();
          throw error;
        }
        end();
        controller.close();
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
  return new Response(body, { headers: { 'content-type': contentType } });
}
