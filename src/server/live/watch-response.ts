import { linkAbort } from '../../core/abort.ts';
import { describeFailure } from '../errors.ts';
import type { Exchange } from '../route.ts';
import { createSseResponse, type SseMessage } from '../sse.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** Streams events until they end or the client leaves, and counts as a watcher meanwhile. Throws a 429 at the limit. */
export function watchResponse(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  watch: (signal: AbortSignal) => AsyncIterable<SseMessage>,
): Response {
  const leave = services.watchers.enter();
  const { signal, abort, unlink } = linkAbort(caller.signal);
  const end = (): void => {
    leave();
    unlink();
    abort();
  };
  signal.addEventListener('abort', leave, { once: true });
  async function* messages(): AsyncGenerator<SseMessage, void, undefined> {
    try {
      yield* watch(signal);
    } finally {
      end();
    }
  }
  return createSseResponse({
    caller,
    services,
    messages: messages(),
    abort: end,
    toError: (error) => ({ event: 'error', data: JSON.stringify(openaiErrors.body(describeFailure(error), '')) }),
  });
}
