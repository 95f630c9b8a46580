import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { RuvLLMError } from '../../core/errors.ts';
import type { HubPlatform, ProcessIdentity } from '../../hub/platform.ts';
import { errnoOf } from './file-errors.ts';
import { nodeHubFiles } from './hub-files.ts';
import { runNpmProcess } from './npm-process.ts';
import { currentPathContext, hubTokenPath, modelCacheRoot } from './paths.ts';

/** Start time in clock ticks since boot (field 22 of /proc/pid/stat); empty where there is no /proc. */
function startTokenOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses and may hold spaces: count from the last one.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

function isProcessAlive(identity: ProcessIdentity): boolean {
  if (identity.host !== hostname()) return true;
  try {
    process.kill(identity.pid, 0);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
  }
  const token = startTokenOf(identity.pid);
  return token === '' || identity.startToken === '' || token === identity.startToken;
}

async function* gunzip(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = createGunzip({ chunkSize: 1 << 18 });
  const input = Readable.from(chunks, { objectMode: false });
  input.on('error', (error) => stream.destroy(error));
  try {
    for await (const chunk of input.pipe(stream)) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    const reason = errnoOf(error) ?? String(error);
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
    identity: { host: hostname(), pid: process.pid, startToken: startTokenOf(process.pid) },
    isProcessAlive,
    fetch: (url, init) => fetch(url, init),
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
