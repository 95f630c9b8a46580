import { displayNameOf } from '../../core/display-name.ts';
import { shortNameOf } from '../../hub/model-names.ts';
import type { CommandRunner } from '../command.ts';
import { formatBytes } from '../format.ts';
import { dayOf } from '../memory/show.ts';
import { openHub } from '../open-hub.ts';

/** Lists the models in the cache, and those that were saved with `create` or `cp`. */
export const run: CommandRunner = async ({ output }) => {
  const hub = openHub();
  const models = (await hub.listModels()).map((model) => ({
    name: shortNameOf(model.reference) ?? model.reference,
    ...model,
    displayName: hub.readDetails(model.path)?.displayName ?? displayNameOf({ ...NO_FACTS, file: model.file }),
  }));
  const saved = await hub.saved.list();
  output.document({ cacheRoot: hub.cacheRoot, models, saved });
  if (models.length + saved.length === 0) {
    output.note(`no models in ${hub.cacheRoot}\nnext: ruvllm pull tinyllama, or ruvllm chat for the default model`);
    return;
  }
  const rows = models.map(({ name, displayName, sizeBytes, modifiedMs }) => [
    name,
    displayName,
    formatBytes(sizeBytes),
    dayOf(modifiedMs),
  ]);
  const savedRows = saved.map(({ name, from, createdMs }) => [name, `from ${from}`, '–', dayOf(createdMs)]);
  output.table(['NAME', 'MODEL', 'SIZE', 'DATE'], [...rows, ...savedRows]);
};

/** A file that cannot be read still has a name. */
const NO_FACTS = { name: null, numParameters: 0, quantization: null, hasChatTemplate: false };
