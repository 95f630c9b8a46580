import { ADAPTER_PREFIX } from '../../learning/sona/learned-adapter.ts';
import type { Memory } from '../../memory/memory.ts';
import { openNodeLearning } from '../../platform/node/learning/open-learning.ts';
import { openNodeMemory } from '../../platform/node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { createLearningControl, learningOperation } from '../../runtime/learning/operations/index.ts';
import type { Model } from '../../runtime/model.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { chooseModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { forgetFeedbackWith, openFeedbackFolder } from '../feedback-folder.ts';
import { nameOf, splitName } from '../commands/served-models.ts';
import { fetchModel } from '../fetch-model.ts';
import { loadWithProgress } from '../load-model.ts';
import type { ClientNeeds, MemoryClient } from '../memory/client.ts';
import { explainLock, readPlace } from '../memory/local-client.ts';

interface WantedModel {
  readonly name: string;
  readonly path: string;
}

/** The model that was named, else the one chat would use; it is fetched now. */
async function findModel(context: CommandContext): Promise<WantedModel> {
  const typed = context.values['--model'] as string | undefined;
  if (typed === undefined) {
    const { reference, source } = await chooseModel(context, undefined);
    return { name: nameOf(reference), path: source };
  }
  const { name, reference } = splitName(typed);
  return { name: name ?? nameOf(reference), path: await fetchModel(context, reference) };
}

/** What the memory of this machine learned; the model is loaded only for what needs it. */
export async function openLocalLearning(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient> {
  const { values, output } = context;
  const tenant = nameOption(values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = readPlace(context, needs.canCreate);
  const report = (message: string): void => output.note(message);
  const wanted = needs.needsModel || needs.needsVectors === true ? await findModel(context) : null;
  let memory: Memory;
  try {
    memory = await openNodeMemory({
      ...(place === undefined ? {} : { place }),
      ...(needs.needsVectors === true ? { modelPath: wanted!.path } : {}),
      report,
    });
  } catch (error) {
    throw explainLock(error, context);
  }
  const learning = openNodeLearning({ memory, report });
  forgetFeedbackWith(openFeedbackFolder(), memory, learning);
  let model: Model | null = null;
  async function close(): Promise<void> {
    await control.runs.close();
    await model?.dispose();
    await control.close();
    await memory.close();
  }
  const learned = (await learning.sona.versions.lines(tenant))
    .filter((line) => line.startsWith(ADAPTER_PREFIX))
    .map((line) => line.slice(ADAPTER_PREFIX.length));
  const control = createLearningControl({
    learning,
    memory,
    models: () => (wanted === null ? learned : [wanted.name]),
    noRouting:
      'needs a server, for routes are in its configuration: --url names one that was started with --route-config',
  });
  try {
    if (needs.needsModel) {
      model = await loadWithProgress(context, wanted!.path, { learning, modelName: wanted!.name }, {});
    }
  } catch (error) {
    await close();
    throw error;
  }
  const typed = values['--model'] as string | undefined;
  return {
    // Where a model is named for an operation, it is by the name that learning has for it.
    call: (name, input) => learningOperation(name).run(control, tenant, input) as Promise<never>,
    modelName: typed === undefined ? null : (splitName(typed).name ?? nameOf(splitName(typed).reference)),
    close,
  };
}
