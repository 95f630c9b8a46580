import { RuvLLMError } from '../../core/errors.ts';
import { LEARNING_OPERATIONS, learningPath } from '../../runtime/learning/operations/index.ts';
import { refusal } from '../errors.ts';
import { operationRoutes } from './operation-route.ts';

/** Turns the rate limit of feedback into a 429 with a retry time; other errors stay unchanged. */
export function explainRateLimit(error: unknown): unknown {
  if (!(error instanceof RuvLLMError) || typeof error.data['retryAfterMs'] !== 'number') return error;
  return refusal(429, 'rate_limit_exceeded', error.message, {
    type: 'rate_limit_error',
    retryAfterSeconds: Math.max(1, Math.ceil(error.data['retryAfterMs'] / 1000)),
    cause: error,
  });
}

/** Every operation of learning as a route. */
export const routes = operationRoutes(LEARNING_OPERATIONS, {
  pathOf: learningPath,
  targetOf: ({ learning }) => learning,
  unavailable: 'learning is off: the server was started with --no-learning or without memory',
  explain: explainRateLimit,
});
