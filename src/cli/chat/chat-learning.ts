import type { ModelConfig } from '../../runtime/model-config.ts';
import { DEFAULT_TENANT } from '../../runtime/default-tenant.ts';
import type { ChosenModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { describeOutcome } from '../learning/describe-outcome.ts';
import { nameOf } from '../commands/served-models.ts';
import { fetchModel } from '../load-model.ts';
import { openRecallMemory, readRecall } from '../memory/recall.ts';
import { requiresError } from '../usage-error.ts';
import type { SendFeedback } from './slash-commands.ts';

export interface ChatLearning {
  readonly config: Pick<ModelConfig, 'memory' | 'learning' | 'modelName'>;
  /** Null: learning is off. */
  readonly sendFeedback: SendFeedback | null;
  /** Call after disposing of the model. */
  close(): Promise<void>;
}

/** A learning step takes far less; the user waits at the prompt. */
const WAIT_MS = 5000;

/** Opens the memory with `--recall` or `--remember`, and learning too with `--learn`; null without all three. */
export async function openChatLearning(context: CommandContext, chosen: ChosenModel): Promise<ChatLearning | null> {
  const { values, output } = context;
  const isLearning = values['--learn'] === true;
  if (!isLearning && readRecall(values) === null) {
    if (values['--memory'] !== undefined) throw requiresError('--memory', '--learn, --recall or --remember');
    return null;
  }
  const report = (message: string): void => output.note(message);
  const memory = await openRecallMemory(context, async () =>
    chosen.choice === 'argument' ? fetchModel(context, chosen.source) : chosen.source,
  );
  const modelName = nameOf(chosen.reference);
  if (!isLearning) return { config: { memory, modelName }, sendFeedback: null, close: () => memory.close() };
  const { openNodeLearning } = await import('../../node/learning/open-learning.ts');
  const learning = openNodeLearning({ memory, report });
  return {
    config: { memory, learning, modelName },
    async sendFeedback(feedback) {
      const { giveFeedback } = await import('../../runtime/learning/operations/give-feedback.ts');
      const { outcome } = await giveFeedback(learning, DEFAULT_TENANT, { ...feedback, source: 'cli' }, WAIT_MS);
      return describeOutcome(outcome).join('; ');
    },
    async close() {
      await learning.close();
      await memory.close();
    },
  };
}
