import type { PullContext } from './pull-context.ts';

/** The parts of an upload that was begun: places for them, and receipts of those that the store has. */
export interface UploadState {
  readonly chunkBytes: number;
  /** Where all parts are reported as complete. */
  readonly completeUrl: string;
  readonly partUrls: readonly string[];
  /** By part; null: not sent yet. */
  readonly receipts: (string | null)[];
}

const FOLDER = '.ruvllm-uploads';
const MAX_STATE_BYTES = 16 << 20;

/** Keeps the state of an upload beside the cache, so that an interrupted one continues. */
export function openUploadState(context: PullContext, repo: string, oid: string) {
  const { files, createHasher } = context.platform;
  const hasher = createHasher('sha256');
  hasher.update(new TextEncoder().encode(`${context.options.endpoint}\n${repo}\n${oid}`));
  const folder = files.join(context.options.cacheRoot, FOLDER);
  const path = files.join(folder, `${hasher.digest()}.json`);
  return {
    /** Null if there is none, or it does not fit the file. */
    async read(sizeBytes: number): Promise<UploadState | null> {
      const text = await files.readText(path, MAX_STATE_BYTES);
      if (text === null) return null;
      try {
        const state = JSON.parse(text) as UploadState;
        const isValid =
          Number.isSafeInteger(state.chunkBytes) &&
          state.chunkBytes > 0 &&
          state.partUrls.length === Math.ceil(sizeBytes / state.chunkBytes) &&
          state.receipts.length === state.partUrls.length;
        return isValid ? state : null;
      } catch {
        return null;
      }
    },
    async write(state: UploadState): Promise<void> {
      await files.makeFolder(folder);
      await files.writeText(path, JSON.stringify(state));
    },
    async remove(): Promise<void> {
      await files.remove(path);
      await files.removeEmptyFolder(folder);
    },
  };
}
