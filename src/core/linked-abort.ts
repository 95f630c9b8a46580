import { RuvLLMError } from './errors.ts';

/** A controller that a parent signal aborts too. */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(): void;
  /** Lets go of the parent, which may live longer; call it when the work has ended. */
  unlink(): void;
}

/** One for all: without a reason, every request would make an exception with a stack of its own when it has ended. */
const ENDED = new RuvLLMError('aborted', 'ended by the server');

/** Not `AbortSignal.any`: it holds its sources weakly, and an abort that gets lost leaves a sequence running. */
export function linkAbort(parent: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  const abort = (): void => controller.abort(parent.reason);
  if (parent.aborted) abort();
  else parent.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    abort: () => controller.abort(ENDED),
    unlink: () => parent.removeEventListener('abort', abort),
  };
}
