import { createHash } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { MAX_FILE_BYTES, type PublishedAdapter } from '../../gateway/releases/release-record.ts';
import type { ReleaseStore } from '../../gateway/releases/release-store.ts';
import { createFileSink } from '../../platform/node/files/file-sink.ts';
import { readSmallFile } from '../../platform/node/files/json-file.ts';
import { makeFolder } from '../../platform/node/sealing/atomic-files.ts';

/** Unused files stay this long: another node of this folder may be about to load one. */
const MAX_UNUSED_MS = 86_400_000;

/** Files of published adapters on this machine, by their hash. */
export interface AdapterFiles {
  /** The path of the file, downloaded if it is not here; its size and hash are those of the record. */
  fetch(adapter: PublishedAdapter): Promise<string>;
  upload(adapter: PublishedAdapter): Promise<void>;
  /** Removes files of other adapters that nothing has used for a day. */
  tidy(used: readonly PublishedAdapter[]): void;
}

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export function createAdapterFiles(store: ReleaseStore, folder: string): AdapterFiles {
  const checked = new Set<string>();
  const pathOf = ({ sha256 }: PublishedAdapter): string => join(folder, `${sha256}.gguf`);

  const isIntact = ({ sha256, sizeBytes }: PublishedAdapter, path: string): boolean =>
    nodeFiles.statSync(path, { throwIfNoEntry: false })?.size === sizeBytes &&
    (checked.has(sha256) || sha256Of(readSmallFile(path, MAX_FILE_BYTES)) === sha256);

  async function download({ model, name, sha256, sizeBytes }: PublishedAdapter, path: string): Promise<void> {
    const shown = `adapter ${model}:${name}`;
    const chunks = await store.getFile(sha256);
    if (chunks === null) throw new RuvLLMError('not_found', `${shown}: its file is not in the object store`, { data: { sha256 } }); // prettier-ignore
    makeFolder(nodeFiles, folder, false);
    const sink = createFileSink(path);
    const hash = createHash('sha256');
    try {
      for await (const chunk of chunks) {
        if (sink.sizeBytes + chunk.length > sizeBytes) {
          throw new RuvLLMError('hash_mismatch', `${shown}: its file has more than the ${sizeBytes} signed bytes`, { data: { sizeBytes } }); // prettier-ignore
        }
        hash.update(chunk);
        sink.write(chunk);
      }
      const digest = hash.digest('hex');
      if (digest !== sha256) {
        const message = `${shown}: its file has ${sink.sizeBytes} bytes with the SHA-256 ${digest.slice(0, 12)}; ${sizeBytes} bytes with ${sha256.slice(0, 12)} were signed`;
        throw new RuvLLMError('hash_mismatch', message, { data: { sha256, digest } });
      }
      sink.commit();
    } finally {
      sink.abort();
    }
  }

  return {
    async fetch(adapter) {
      if (adapter.sizeBytes > MAX_FILE_BYTES) {
        const message = `adapter ${adapter.model}:${adapter.name} has ${adapter.sizeBytes} bytes; the limit is ${MAX_FILE_BYTES}`;
        throw new RuvLLMError('limit_exceeded', message, { data: { sizeBytes: adapter.sizeBytes, limit: MAX_FILE_BYTES } }); // prettier-ignore
      }
      const path = pathOf(adapter);
      if (!isIntact(adapter, path)) await download(adapter, path);
      checked.add(adapter.sha256);
      return path;
    },
    async upload(adapter) {
      const path = pathOf(adapter);
      if (!isIntact(adapter, path) || (await store.hasFile(adapter.sha256, adapter.sizeBytes))) return;
      await store.putFile(adapter.sha256, readSmallFile(path, MAX_FILE_BYTES));
    },
    tidy(used) {
      const names = new Set(used.map(({ sha256 }) => `${sha256}.gguf`));
      if (!nodeFiles.existsSync(folder)) return;
      for (const name of nodeFiles.readdirSync(folder)) {
        const path = join(folder, name);
        const stats = names.has(name) ? undefined : nodeFiles.statSync(path, { throwIfNoEntry: false });
        if (stats === undefined || Date.now() - stats.mtimeMs < MAX_UNUSED_MS) continue;
        nodeFiles.rmSync(path, { force: true });
      }
    },
  };
}
