import type { CommandRunner } from '../command.ts';
import { formatBytes, formatSeconds } from '../format.ts';
import { withProgress } from '../load-model.ts';
import { openHub } from '../open-hub.ts';

/** Downloads a model into the cache. */
export const run: CommandRunner = async ({ io, output, args }) => {
  const reference = args[0]!;
  const startMs = io.now();
  const pulled = await withProgress({ output }, null, (onProgress) =>
    openHub().pullModel(reference, { signal: io.signal, onProgress }),
  );
  output.document({ reference, ...pulled });
  const verb = pulled.isDownloaded ? 'pulled' : 'already in the cache:';
  output.lines(`${verb} ${reference} (${formatBytes(pulled.sizeBytes)})\n${pulled.path}`);
  if (pulled.isDownloaded) output.aside(`in ${formatSeconds((io.now() - startMs) / 1000)}`);
  output.aside(`next: ruvllm run ${reference} "your prompt"`);
};
