import type { CommandRunner } from '../command.ts';
import { formatBytes } from '../format.ts';
import { dayOf } from '../memory/show.ts';
import { openHub } from '../open-hub.ts';

/** Lists the models in the cache. */
export const run: CommandRunner = async ({ output }) => {
  const hub = openHub();
  const models = await hub.listModels();
  output.document({ cacheRoot: hub.cacheRoot, models });
  if (models.length === 0) {
    output.note(
      `no models in ${hub.cacheRoot}\nnext: ruvllm pull owner/repo:QUANT, or ruvllm chat for the default model`,
    );
    return;
  }
  const rows = models.map(({ reference, sizeBytes, modifiedMs, file }) => [
    reference,
    formatBytes(sizeBytes),
    dayOf(modifiedMs),
    file,
  ]);
  output.table(['MODEL', 'SIZE', 'DATE', 'FILE'], rows);
};
