import { ADAPTER_PREFIX } from '../../learning/sona/learned-adapter.ts';
import type { Memory } from '../../memory/memory.ts';
import { openNodeFederation } from '../../node/learning/open-federation.ts';
import { openNodeLearning } from '../../node/learning/open-learning.ts';
import { openNodeMemory } from '../../node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { createLearningControl, learningOperation } from '../../runtime/learning/operations/index.ts';
import type { Model } from '../../runtime/model.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { chooseModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { nameOf, splitName } from '../commands/served-models.ts';
import { fetchModel, loadWithProgress } from '../load-model.ts';
import type { ClientNeeds, MemoryClient } from '../memory/client-types.ts';
import { findEmbedder } from '../memory/find-embedder.ts';
import { explainLock } from '../memory/explain-lock.ts';
import { readPlace, requireUnlocked } from '../memory/local-client.ts';

interface LocalModel {
  readonly name: string;
  readonly path: string;
}

/** The model of --model, else the default model, downloaded if necessary. */
async function findModel(context: CommandContext): Promise<LocalModel> {
  const modelFlag = context.values['--model'] as string | undefined;
  if (modelFlag === undefined) {
    const { reference, source } = await chooseModel(context, undefined);
    return { name: nameOf(reference), path: source };
  }
  const { name, reference } = splitName(modelFlag);
  return { name: name ?? nameOf(reference), path: await fetchModel(context, reference) };
}

/** Learning in the memory of this machine; loads the model only if `needs` says so. */
export async function openLocalLearning(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient> {
  const { values, output } = context;
  const tenant = nameOption(values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = readPlace(context, needs.canCreate);
  const report = (message: string): void => output.note(message);
  const hasModel = needs.needsModel || needs.needsVectors === true;
  let localModel: LocalModel | null;
  let memory: Memory;
  try {
    if (hasModel) requireUnlocked(place);
    localModel = hasModel ? await findModel(context) : null;
    memory = await openNodeMemory({
      ...(place === undefined ? {} : { place }),
      ...(needs.needsVectors === true
        ? (await findEmbedder(context, async () => localModel!.path)).options
        : { modelPath: null }),
      report,
    });
  } catch (error) {
    throw explainLock(error);
  }
  const learning = openNodeLearning({ memory, report });
  let model: Model | null = null;
  async function close(): Promise<void> {
    await control.runs.close();
    await model?.dispose();
    await control.close();
    await memory.close();
  }
  const learnedModels = (await learning.sona.versions.lines(tenant))
    .filter((line) => line.startsWith(ADAPTER_PREFIX))
    .map((line) => line.slice(ADAPTER_PREFIX.length));
  const control = createLearningControl({
    learning,
    memory,
    federation: openNodeFederation(memory),
    models: () => (localModel === null ? learnedModels : [localModel.name]),
    noRouting: 'requires --url with a server that was started with --route-config',
  });
  try {
    if (needs.needsModel) {
      model = await loadWithProgress(context, localModel!.path, { learning, modelName: localModel!.name }, {});
    }
  } catch (error) {
    await close();
    throw error;
  }
  const modelFlag = values['--model'] as string | undefined;
  const split = modelFlag === undefined ? null : splitName(modelFlag);
  return {
    call: (name, input) => learningOperation(name).run(control, tenant, input) as Promise<never>,
    modelName: split === null ? null : (split.name ?? nameOf(split.reference)),
    close,
  };
}
