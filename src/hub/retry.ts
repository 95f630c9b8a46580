import { RuvLLMError } from '../core/errors.ts';
import { checkAborted, type PullContext } from './pull-context.ts';

const FIRST_DELAY_MS = 500;
/** Also the most a hub's Retry-After is heeded: longer than this the user should know, not wait. */
const MAX_DELAY_MS = 30_000;

/**
 * Repeats what failed for a passing reason, waiting longer each time. `attempt` calls `hasProgressed` when it brought
 * something, which makes the count start again: a long file over a bad line may need many connections.
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
      const asked = typeof error.data['retryAfterMs'] === 'number' ? error.data['retryAfterMs'] : -1;
      const delayMs = asked >= 0 ? asked : FIRST_DELAY_MS * 2 ** (numFailures - 1);
      await context.platform.sleep(Math.min(delayMs, MAX_DELAY_MS), context.signal);
    }
  }
}
