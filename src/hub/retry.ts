import { RuvLLMError } from '../core/errors.ts';
import { checkAborted, type PullContext } from './pull-context.ts';

const FIRST_DELAY_MS = 500;
/** Also the longest Retry-After that is honoured: beyond this the user should see an error. */
const MAX_DELAY_MS = 30_000;

/**
 * Retries transient failures with increasing delays. `attempt` calls `hasProgressed` after progress, which restarts the
 * count: a long file over a bad line may need many connections.
 */
export async function withRetries<T>(
  context: PullContext,
  doing: string,
  attempt: (hasProgressed: () => void) => Promise<T>,
): Promise<T> {
  let numFailures = 0;
  for (;;) {
    checkAborted(context, doing);
    try {
      return await attempt(() => {
        numFailures = 0;
      });
    } catch (error) {
      if (!(error instanceof RuvLLMError) || !error.isRetryable) throw error;
      numFailures++;
      if (numFailures >= context.options.maxAttempts) throw error;
      const retryAfterMs = typeof error.data['retryAfterMs'] === 'number' ? error.data['retryAfterMs'] : -1;
      const delayMs = retryAfterMs >= 0 ? retryAfterMs : FIRST_DELAY_MS * 2 ** (numFailures - 1);
      await context.platform.sleep(Math.min(delayMs, MAX_DELAY_MS), context.signal);
    }
  }
}
