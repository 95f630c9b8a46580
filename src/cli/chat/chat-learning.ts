import type { ModelConfig } from '../../runtime/model-config.ts';
import { openNodeLearning } from '../../node/learning/open-learning.ts';
import { openNodeMemory } from '../../node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { giveFeedback } from '../../runtime/learning/operations/index.ts';
import type { ChosenModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { describeOutcome } from '../learning/describe-outcome.ts';
import { nameOf } from '../commands/served-models.ts';
import { fetchModel } from '../load-model.ts';
import { describeFallback, findEmbedder } from '../memory/find-embedder.ts';
import { explainLock } from '../memory/local-client.ts';
import { memoryPlace } from '../memory/memory-place.ts';
import { requiresError } from '../usage-error.ts';
import type { SendFeedback } from './slash-commands.ts';

export interface ChatLearning {
  readonly config: Pick<ModelConfig, 'memory' | 'learning' | 'modelName'>;
  readonly sendFeedback: SendFeedback;
  /** Call after disposing of the model. */
  close(): Promise<void>;
}

/** A learning step takes far less; the user waits at the prompt. */
const WAIT_MS = 5000;

/** Opens memory and learning with `--learn`; returns null without it. */
export async function openChatLearning(context: CommandContext, chosen: ChosenModel): Promise<ChatLearning | null> {
  const { values, output } = context;
  const place = memoryPlace(context) as string | undefined;
  if (values['--learn'] !== true) {
    if (values['--memory'] !== undefined) throw requiresError('--memory', '--learn');
    return null;
  }
  const report = (message: string): void => output.note(message);
  const { options, fallbackReason } = await findEmbedder(context, async () =>
    chosen.choice === 'argument' ? fetchModel(context, chosen.source) : chosen.source,
  );
  if (fallbackReason !== null) report(describeFallback(fallbackReason));
  const memory = await openNodeMemory({ ...(place === undefined ? {} : { place }), ...options, report }).catch(
    (error: unknown) => {
      throw explainLock(error);
    },
  );
  const learning = openNodeLearning({ memory, report });
  return {
    config: { memory, learning, modelName: nameOf(chosen.reference) },
    async sendFeedback(feedback) {
      const { outcome } = await giveFeedback(learning, DEFAULT_TENANT, { ...feedback, source: 'cli' }, WAIT_MS);
      return describeOutcome(outcome).join('; ');
    },
    async close() {
      await learning.close();
      await memory.close();
    },
  };
}
