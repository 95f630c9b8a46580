import { RuvLLMError } from '../core/errors.ts';

/** Watches an answer while it is streamed: the meter, the trace, the memory. */
export interface StreamObserver<T> {
  onEvent(event: T): void;
  /**
   * Called once: with null after the last event, otherwise with the error that ended the stream. The last event is handed over
   * only when the returned promise is settled.
   */
  onEnd(error: unknown): Promise<void> | void;
}

/** Ends a stream whose reader stopped early. One instance, because capturing a stack costs time. */
export const READER_LEFT = new RuvLLMError('aborted', 'the caller left');

/** Passes events through and shows each to the observers first. */
export async function* observeStream<T>(
  events: AsyncGenerator<T, void, undefined>,
  isLast: (event: T) => boolean,
  observers: readonly StreamObserver<T>[],
): AsyncGenerator<T, void, undefined> {
  let isEnded = false;
  const end = (error: unknown): Promise<void>[] => {
    if (isEnded) return [];
    isEnded = true;
    return observers.map((observer) => observer.onEnd(error)).filter((ending) => ending instanceof Promise);
  };
  try {
    for await (const event of events) {
      for (const observer of observers) observer.onEvent(event);
      // Before the last event is handed over: a reader that has it may never ask for the end of the stream.
      if (isLast(event)) {
        const endings = end(null);
        if (endings.length > 0) await Promise.allSettled(endings);
      }
      yield event;
    }
  } catch (error) {
    end(error);
    throw error;
  } finally {
    end(READER_LEFT);
  }
}
