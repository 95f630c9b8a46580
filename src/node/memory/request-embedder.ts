import { basename } from 'node:path';
import type { Embedder } from '../../memory/embedder-types.ts';
import type { StaticEmbedder } from '../../memory/embedder/static-embedder.ts';

/** Longer texts are embedded in the memory's thread: this one serves requests, and 1,000 characters take it 0.2 ms. */
const MAX_CHARS_HERE = 2000;
/** Texts that can wait come by the hundred; of short ones, the messages would take as long as the embedding. */
const MAX_WAITING_CHARS_HERE = 200;

/** Embeds in the memory's thread: reading a vocabulary stops this one for up to a second, and takes its memory twice. */
export const createThreadEmbedder = (
  remote: Pick<Embedder, 'fingerprint' | 'dim' | 'embed'>,
  path: string,
): Embedder => ({
  fingerprint: remote.fingerprint,
  dim: remote.dim,
  name: `static, token embeddings of ${basename(path)}`,
  embed: (text) => remote.embed(text),
});

/** Embeds short texts in this thread, which saves a request two changes of threads. Opens the table at the first of them that cannot wait. */
export function createRequestEmbedder(
  remote: Pick<Embedder, 'fingerprint' | 'dim' | 'embed'> & Pick<StaticEmbedder, 'common'>,
  path: string,
): Embedder {
  let opening: Promise<unknown> | null = null;
  let table: (StaticEmbedder & { close(): Promise<void> }) | null = null;
  const open = async (): Promise<void> => {
    const { openTableEmbedder } = await import('./table-embedder.ts');
    table = openTableEmbedder(path, remote.common);
  };
  const embedUpTo = (maxChars: number, text: string): Float32Array | Promise<Float32Array> =>
    table === null || text.length > maxChars ? remote.embed(text) : table.embed(text);
  return {
    ...createThreadEmbedder(remote, path),
    embed(text) {
      // A file that cannot be opened again is not lost: the memory's thread has it open.
      if (text.length <= MAX_CHARS_HERE) opening ??= open().catch(() => {});
      return embedUpTo(MAX_CHARS_HERE, text);
    },
    embedLater: (text) => embedUpTo(MAX_WAITING_CHARS_HERE, text),
    async close() {
      await opening;
      await table?.close();
    },
  };
}
