import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { RuvLLMError } from '../../core/errors.ts';
import { errnoOf } from '../../platform/node/files/file-errors.ts';
import type { ModelFiles } from '../../server/model-files.ts';

const CHUNK_BYTES = 256 * 1024;
/** Hashes that are kept; a server has few models. */
const MAX_HASHES = 256;
/** Files of a split model: one of them is no model. */
const SPLIT = /-\d{5}-of-\d{5}\.gguf$/i;

/** Files of models on this machine. Each version of a file is hashed once, with the first request for it. */
export function createModelFiles(): ModelFiles {
  const hashes = new Map<string, Promise<string>>();

  function hashOf(path: string, identity: string): Promise<string> {
    const known = hashes.get(identity);
    if (known !== undefined) return known;
    if (hashes.size >= MAX_HASHES) hashes.clear();
    const hash = hashFile(path);
    hashes.set(identity, hash);
    hash.catch(() => hashes.delete(identity));
    return hash;
  }

  return {
    async describe(path) {
      if (SPLIT.test(path)) {
        throw new RuvLLMError('unsupported', 'the model is split into several files and cannot be downloaded as one');
      }
      try {
        const { size, mtimeMs, ino, isFile } = await describeFile(path);
        if (!isFile) throw new RuvLLMError('not_found', 'the model is not one file');
        return { sizeBytes: size, sha256: await hashOf(path, `${path} ${size} ${mtimeMs} ${ino}`) };
      } catch (cause) {
        if (cause instanceof RuvLLMError) throw cause;
        // Clients never see paths.
        const errno = errnoOf(cause);
        const code = errno === 'ENOENT' || errno === 'ENOTDIR' ? 'not_found' : 'io';
        throw new RuvLLMError(code, `the model's file cannot be read: ${errno ?? 'unknown error'}`, { cause });
      }
    },
    read(path, { start, end }, onChunk) {
      let file: FileHandle | null = null;
      let at = start;
      const close = async (): Promise<void> => {
        await file?.close();
        file = null;
      };
      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            try {
              onChunk();
              file ??= await open(path);
              const buffer = new Uint8Array(Math.min(CHUNK_BYTES, end - at));
              const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
              // A file that became shorter: the client must not take the rest for complete.
              if (bytesRead === 0) throw new RuvLLMError('io', `the model's file ended at byte ${at} of ${end}`);
              at += bytesRead;
              controller.enqueue(buffer.subarray(0, bytesRead));
              if (at < end) return;
              await close();
              controller.close();
            } catch (error) {
              await close();
              throw error;
            }
          },
          cancel: close,
        },
        // No read ahead: the response to HEAD is never read, and its file must not stay open.
        { highWaterMark: 0 },
      );
    },
  };
}

async function describeFile(path: string): Promise<{ size: number; mtimeMs: number; ino: number; isFile: boolean }> {
  const stats = await stat(path);
  return { size: stats.size, mtimeMs: stats.mtimeMs, ino: stats.ino, isFile: stats.isFile() };
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
}
