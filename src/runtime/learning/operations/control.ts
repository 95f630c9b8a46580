import { isWholeTenant } from '../../../core/erasure.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import type { Federation } from '../../../learning/federation/federation.ts';
import type { Memory } from '../../../memory/memory.ts';
import type { Learning } from '../learning.ts';
import { createLearningRuns, type LearningRuns } from './runs.ts';

/** The host of learning: learner, memory and models. */
export interface LearningHost {
  readonly learning: Learning;
  readonly memory: Memory;
  /** Names of available models. Default: the attached ones. */
  models?(): readonly string[];
  /** Keeps a model loaded during `work`, which gets the model's id. Default: does nothing. */
  withModel?<T>(id: string, work: (modelId: string) => Promise<T>): Promise<T>;
  /** The message if there is no router to train. */
  readonly noRouting?: string;
  /** Default null: nothing is shared with other nodes. */
  readonly federation?: Federation | null;
}

/** Learning for operators, shared by command line and HTTP. */
export interface LearningControl {
  readonly learning: Learning;
  readonly memory: Memory;
  readonly runs: LearningRuns;
  /** Null: this node has no key. */
  readonly federation: Federation | null;
  models(): readonly string[];
  /** Whether a model that is not loaded can be loaded. */
  readonly canLoad: boolean;
  /** Runs `work` with the named model, or the only one. */
  withModel<T>(id: string | undefined, work: (modelId: string) => Promise<T>): Promise<T>;
  /** The name of the model, without loading it. */
  modelName(id: string | undefined): string;
  /** Stops runs, then closes learning; the memory stays open. */
  close(): Promise<void>;
}

export function createLearningControl(host: LearningHost): LearningControl {
  const { learning, memory, federation = null } = host;
  const models = (): readonly string[] => host.models?.() ?? learning.models();
  const hold = host.withModel ?? (<T>(id: string, work: (modelId: string) => Promise<T>) => work(id));

  function modelName(id: string | undefined): string {
    if (id !== undefined) return id;
    const known = models();
    if (known.length === 1) return known[0]!;
    const which = known.length === 0 ? 'none is loaded' : `loaded: ${known.slice(0, 20).join(', ')}`;
    throw new RuvLLMError('invalid_option', `name a model (${which})`, { data: { option: 'model' } });
  }

  const { noRouting = 'no routes are configured; start with ruvllm serve --route-config FILE' } = host;
  const runs = createLearningRuns({ learning, federation, noRouting, now: () => memory.services.now(), hold });
  const unregister = memory.erasure.register({
    name: 'learning runs',
    // A run for a user's tenant may have read what is erased.
    erase: ({ tenant }) => runs.forget(tenant),
    count: async (subject) => (isWholeTenant(subject) ? runs.list(subject.tenant).length : 0),
  });
  return {
    learning,
    memory,
    runs,
    federation,
    canLoad: host.withModel !== undefined,
    models,
    modelName,
    withModel: async (id, work) => hold(modelName(id), work),
    async close() {
      unregister();
      await runs.close();
      await learning.close();
    },
  };
}
