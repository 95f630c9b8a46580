import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import type { HubPlatform } from '../../../hub/platform.ts';
import { errnoOf } from '../files/file-errors.ts';
import { nodeHubFiles } from '../files/hub-files.ts';
import { runNpmProcess } from './npm-process.ts';
import { currentPathContext, hubTokenPath, modelCacheRoot } from '../files/paths.ts';
import { fetchPublic } from './public-fetch.ts';
import { isProcessAlive, ownIdentity } from './process-identity.ts';

async function* gunzip(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = createGunzip({ chunkSize: 1 << 18 });
  const input = Readable.from(chunks, { objectMode: false });
  input.on('error', (error) => stream.destroy(error));
  try {
    for await (const chunk of input.pipe(stream)) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    const reason = errnoOf(error) ?? messageOf(error);
    throw new RuvLLMError('download_failed', `gzip data is damaged or cut off: ${reason}`, { cause: error });
  } finally {
    input.destroy();
    stream.destroy();
  }
}

function sleep(delayMs: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      clearTimeout(timer);
      reject(new RuvLLMError('aborted', 'cancelled while waiting'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', aborted);
      resolve();
    }, delayMs);
    if (signal?.aborted === true) aborted();
    else signal?.addEventListener('abort', aborted, { once: true });
  });
}

/** The hub's outside world on Node. */
export function createNodeHubPlatform(): HubPlatform {
  const paths = currentPathContext();
  return {
    files: nodeHubFiles,
    cacheRoot: modelCacheRoot(paths),
    tokenPath: hubTokenPath(paths),
    environment: paths.environment,
    identity: ownIdentity(),
    isProcessAlive,
    fetch: (url, init) => fetch(url, init),
    fetchPublic: (url, init) => fetchPublic(url, init),
    createHasher(algorithm) {
      const hash = createHash(algorithm);
      return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('hex') };
    },
    gunzip,
    runNpm: runNpmProcess,
    now: () => Date.now(),
    sleep,
    startTimer(delayMs, callback) {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
    uniqueName: () => randomBytes(8).toString('hex'),
  };
}
