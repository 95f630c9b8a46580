import type { Clock } from '../core/clock.ts';

export interface PacedOptions {
  readonly contentType: string;
  readonly clock: Clock;
  /** Called once: when all is written, or the client has left. */
  readonly onEnd: () => void;
}

/** A response of a long text whose pieces are made when the client takes them, with a pause before each: others are served meanwhile. */
export function pacedResponse(pieces: Iterable<string>, { contentType, clock, onEnd }: PacedOptions): Response {
  const encoder = new TextEncoder();
  const iterator = pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // A socket that takes everything at once would otherwise let nobody else come between two pieces.
        await new Promise<void>((resolve) => clock.setTimer(0, resolve));
        try {
          const { value, done } = iterator.next();
          if (done !== true) return controller.enqueue(encoder.encode(value));
        } catch (error) {
          onEnd();
          throw error;
        }
        onEnd();
        controller.close();
      },
      cancel: () => onEnd(),
    },
    { highWaterMark: 1 },
  );
  return new Response(body, { headers: { 'content-type': contentType } });
}
