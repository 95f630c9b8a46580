import { RuvLLMError } from '../../../core/errors.ts';
import type { Memory } from '../../../memory/memory.ts';
import type { Learning } from '../learning.ts';
import { createLearningRuns, type LearningRuns } from './runs.ts';

/** Where learning happens: what learns, what it is kept in, and how a model comes to be there for it. */
export interface LearningHost {
  readonly learning: Learning;
  readonly memory: Memory;
  /** Names of the models that can be there. Default: those that are. */
  models?(): readonly string[];
  /** Keeps a model loaded while `work` goes on, and tells it the name that learning knows it by. Default: as it is. */
  withModel?<T>(id: string, work: (modelId: string) => Promise<T>): Promise<T>;
  /** Said where somebody wants a router trained, and there is none. */
  readonly noRouting?: string;
}

/** Operator commands for learning, shared by the command line and HTTP. */
export interface LearningControl {
  readonly learning: Learning;
  readonly memory: Memory;
  readonly runs: LearningRuns;
  models(): readonly string[];
  /** With the model that is named, or the only one there is. */
  withModel<T>(id: string | undefined, work: (modelId: string) => Promise<T>): Promise<T>;
  /** The name that is meant, where the model itself is not needed. */
  modelName(id: string | undefined): string;
  /** Stops what runs, then closes learning; the memory stays open. */
  close(): Promise<void>;
}

export function createLearningControl(host: LearningHost): LearningControl {
  const { learning, memory } = host;
  const models = (): readonly string[] => host.models?.() ?? learning.models();
  const hold = host.withModel ?? (<T>(id: string, work: (modelId: string) => Promise<T>) => work(id));

  function modelName(id: string | undefined): string {
    if (id !== undefined) return id;
    const known = models();
    if (known.length === 1) return known[0]!;
    const which = known.length === 0 ? 'none is loaded' : `there are ${known.slice(0, 20).join(', ')}`;
    throw new RuvLLMError('invalid_option', `a model must be named: ${which}`, { data: { option: 'model' } });
  }

  const { noRouting = 'there are no routes: ruvllm serve --route-config FILE has some' } = host;
  const runs = createLearningRuns({ learning, noRouting, now: () => memory.services.now(), hold });
  return {
    learning,
    memory,
    runs,
    models,
    modelName,
    withModel: async (id, work) => hold(modelName(id), work),
    async close() {
      await runs.close();
      await learning.close();
    },
  };
}
