import { RuvLLMError } from '../../core/errors.ts';
import { listServers } from '../servers/server-registry.ts';

/** Suggests --url if another process has the memory open. */
export function explainLock(error: unknown): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'conflict') return error;
  const server = listServers().find(({ process: { pid } }) => pid === error.data['pid']);
  const next =
    server === undefined
      ? 'wait until it exits; ruvllm ps lists running servers, which --url can use'
      : `repeat with --url ${server.url}`;
  return new RuvLLMError('conflict', `cannot open the memory: ${error.message}`, {
    cause: error,
    data: { ...error.data, next },
    isRetryable: true,
  });
}
