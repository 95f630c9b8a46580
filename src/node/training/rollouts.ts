import { createAdapter } from '../../adapters/index.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { PromptText } from '../../learning/training/data/records.ts';
import type { Rollout, SampleAnswers } from '../../learning/training/grpo-run.ts';
import { MAX_EXAMPLE_TOKENS } from '../../runtime/learning/encode-example.ts';
import type { Model } from '../../runtime/model.ts';
import type { Trainer } from './open-trainer.ts';

const ADAPTER = 'training';

export interface RolloutOptions {
  readonly model: Model;
  readonly trainer: Trainer;
  /** Longest answer. */
  readonly maxTokens: number;
}

/** Samples answers with the serving engine, all side by side: it batches them and computes each prompt once. */
export function createRollouts({ model, trainer, maxTokens }: RolloutOptions): SampleAnswers {
  const { architecture, work, plan, endId } = trainer;
  const promptIds = promptIdsOf(trainer);
  return async (parameters, tasks, { numSamples, seed, temperature }) => {
    if (parameters !== null) {
      const adapter = await createAdapter(architecture, await work.factorsOf(plan, parameters));
      await model.loadAdapter(adapter, { name: ADAPTER });
    }
    const one = async (prompt: PromptText, sampleSeed: number): Promise<Rollout> => {
      const { text, tokenIds, finishReason } = await model.generate(prompt, {
        maxTokens,
        temperature,
        seed: sampleSeed,
        // The gradient assumes samples of the model's own distribution.
        topP: 1,
        topK: 0,
        minP: 0,
        repetitionPenalty: 1,
        corrections: false,
        ...(parameters === null ? {} : { adapter: ADAPTER }),
      });
      const ended = finishReason === 'stop' && endId !== null && tokenIds.at(-1) !== endId;
      const asked = await promptIds(prompt);
      const answer = [...tokenIds, ...(ended ? [endId] : [])];
      return {
        text,
        example: { tokenIds: Int32Array.from([...asked, ...answer]), numPromptTokens: asked.length },
      };
    };
    try {
      return await Promise.all(
        tasks.map(({ prompt }, i) =>
          Promise.all(Array.from({ length: numSamples }, (_, k) => one(prompt, seed * 4096 + i * numSamples + k))),
        ),
      );
    } finally {
      if (parameters !== null) model.unloadAdapter(ADAPTER);
    }
  };
}

/** The tokens of a prompt, without those of an answer. */
function promptIdsOf({ encode }: Trainer): (prompt: PromptText) => Promise<readonly number[]> {
  const known = new Map<string, readonly number[]>();
  return async (prompt) => {
    const key = JSON.stringify(prompt);
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    const example = await encode(prompt, '{');
    if (example === null) {
      throw new RuvLLMError('context_overflow', `a prompt is longer than ${MAX_EXAMPLE_TOKENS} tokens`, {
        data: { maxTokens: MAX_EXAMPLE_TOKENS },
      });
    }
    const ids = Array.from(example.tokenIds).slice(0, example.numPromptTokens);
    known.set(key, ids);
    return ids;
  };
}
