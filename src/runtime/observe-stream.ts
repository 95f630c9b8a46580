import { RuvLLMError } from '../core/errors.ts';

/** Watches an answer while it is streamed: the meter, the trace, the memory. */
export interface StreamObserver<T> {
  onEvent(event: T): void;
  /** Called once: with null after the last event, otherwise with the error that ended the stream. */
  onEnd(error: unknown): void;
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
  const end = (error: unknown): void => {
    if (isEnded) return;
    isEnded = true;
    for (const observer of observers) observer.onEnd(error);
  };
  try {
    for await (const event of events) {
      for (const observer of observers) observer.onEvent(event);
      // Before the last event is handed over: a reader that has it may never ask for the end of the stream.
      if (isLast(event)) end(null);
      yield event;
    }
  } catch (error) {
    end(error);
    throw error;
  } finally {
    end(READER_LEFT);
  }
}
