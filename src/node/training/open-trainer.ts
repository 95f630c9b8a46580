import type { EncodeAnswer } from '../../learning/training/methods.ts';
import type { AdapterPlan, LearningWork } from '../../learning/sona/types.ts';
import { rememberedContentHash } from '../../platform/node/files/content-identity.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createExampleEncoder, MAX_EXAMPLE_TOKENS } from '../../runtime/learning/encode-example.ts';
import { endIdsOf, readTextSide } from '../../runtime/text/text-side.ts';
import { openLearningWork } from '../learning/open-learning.ts';

/** A model that can be trained: its learning thread and its tokenizer. */
export interface Trainer {
  readonly work: LearningWork;
  readonly plan: AdapterPlan;
  readonly architecture: string;
  /** SHA-256 of the contents of the model file. */
  readonly modelHash: string;
  readonly encode: EncodeAnswer;
  /** Token that ends an answer; null: the model has none. */
  readonly endId: number | null;
  close(): Promise<void>;
}

/** Opens a model file; its weights are loaded by the first task of the thread. */
export function openTrainer(path: string, { rank, numLayers }: Pick<AdapterPlan, 'rank' | 'numLayers'>): Trainer {
  const gguf = openModelFile(path);
  try {
    const side = readTextSide(gguf.metadata);
    const endIds = endIdsOf(side.tokenizer);
    const encode = createExampleEncoder({ ...side, endIds, textThread: null }, MAX_EXAMPLE_TOKENS);
    const { eosId } = side.tokenizer;
    const { work, end } = openLearningWork();
    return {
      work,
      plan: { path, rank, numLayers, maxTokens: MAX_EXAMPLE_TOKENS },
      architecture: gguf.metadata.string('general.architecture'),
      modelHash: rememberedContentHash([path]),
      async encode(prompt, answer) {
        const example = await encode(prompt, answer);
        // Plain numbers would be copied to the thread one by one.
        return example === null ? null : { ...example, tokenIds: Int32Array.from(example.tokenIds) };
      },
      endId: eosId !== null && endIds.includes(eosId) ? eosId : (endIds[0] ?? null),
      // Not earlier: the vocabulary is read lazily.
      async close() {
        gguf.source.close();
        await end();
      },
    };
  } catch (error) {
    gguf.source.close();
    throw error;
  }
}
