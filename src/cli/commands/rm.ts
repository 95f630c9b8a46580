import { repackFolder } from '../../node/engine/repack-cache.ts';
import { dropOrphans } from '../../node/engine/repack-folder.ts';
import type { CommandRunner } from '../command.ts';
import { formatBytes } from '../format.ts';
import { openHub } from '../open-hub.ts';

/** Removes a model from the cache, never a file outside of it. */
export const run: CommandRunner = async ({ output, args }) => {
  const reference = args[0]!;
  const { removed, freedBytes: modelBytes } = await openHub().removeModel(reference);
  const freedBytes = modelBytes + dropOrphans(repackFolder());
  output.document({ reference, removed, freedBytes });
  output.lines(
    `removed ${reference}: ${removed.length} ${removed.length === 1 ? 'file' : 'files'}, ${formatBytes(freedBytes)} freed`,
  );
};
