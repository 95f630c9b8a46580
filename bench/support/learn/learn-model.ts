import type { GgufFile } from '../../../src/gguf/index.ts';
import type { KernelPackFactory } from '../../../src/kernels/contract.ts';
import type { TrainingExample } from '../../../src/learning/lora-training/types.ts';
import type { LoadedModel } from '../../../src/models/index.ts';
import type { Tokenizer } from '../../../src/tokenizers/index.ts';
import { importBuilt } from '../dist.ts';
import type { TopicText } from './topic-corpus.ts';

/** A model under test: its file, its tokenizer, and a served copy for hidden states and sampling. */
export interface LearnModel {
  readonly gguf: GgufFile;
  readonly factory: KernelPackFactory;
  readonly numThreads: number;
  readonly served: LoadedModel;
  encode(text: TopicText): TrainingExample;
  dispose(): Promise<void>;
}

/** Longest text of the corpus, with a margin. */
export const MAX_TEXT_TOKENS = 128;

export async function openLearnModel(path: string, numThreads: number): Promise<LearnModel> {
  const { openModelFile } = await importBuilt<typeof import('../../../src/platform/node/files/open-model-file.ts')>(
    'platform/node/files/open-model-file',
  );
  const { createKernelFactory } = await importBuilt<
    typeof import('../../../src/platform/node/kernels/kernel-factory.ts')
  >('platform/node/kernels/kernel-factory');
  const { createTokenizer } = await importBuilt<typeof import('../../../src/tokenizers/index.ts')>('tokenizers/index');
  const { loadModel } = await importBuilt<typeof import('../../../src/models/index.ts')>('models/index');
  const gguf = openModelFile(path);
  const types = [...new Set([...gguf.tensors.values()].map(({ type }) => type)), 'F16' as const];
  const warn = ({ message }: { message: string }): void => console.log(message);
  const factory = await createKernelFactory('auto', { numThreads, types, warn });
  const limits = {
    maxBatchTokens: MAX_TEXT_TOKENS,
    maxSequences: 1,
    maxLogitRows: MAX_TEXT_TOKENS,
    numPages: 16,
    kvPrecision: 'f32' as const,
  };
  const served = await loadModel(gguf, factory, { limits, numThreads });
  const tokenizer: Tokenizer = createTokenizer(gguf.metadata);
  return {
    gguf,
    factory,
    numThreads,
    served,
    encode({ prompt, answer }) {
      const start = tokenizer.encode(prompt);
      const tokenIds = tokenizer.encode(prompt + answer);
      // Words may join over the border: the prompt ends where both agree.
      let numPromptTokens = 0;
      while (numPromptTokens < start.length && start[numPromptTokens] === tokenIds[numPromptTokens]) numPromptTokens++;
      return { tokenIds, numPromptTokens };
    },
    dispose: () => served.dispose(),
  };
}

/** Runs one text through the served model: logits and hidden states of the rows that predict the answer; views until the next call. */
export async function runText(
  { served }: LearnModel,
  { tokenIds, numPromptTokens }: TrainingExample,
): Promise<{ logits: Float32Array; hidden: Float32Array; labels: number[] }> {
  const numRows = tokenIds.length;
  const rows = Array.from({ length: numRows }, (_, row) => row);
  const answerRows = rows.slice(numPromptTokens - 1, -1);
  const logits = await served.forward({
    tokenIds,
    positions: rows,
    slots: rows,
    sequences: [{ firstRow: 0, numRows, contextTokens: numRows, pageIds: rows.slice(0, Math.ceil(numRows / 16)) }],
    logitRows: answerRows,
    hiddenRows: answerRows,
  });
  return { logits, hidden: served.hiddenStates(), labels: Array.from(tokenIds).slice(numPromptTokens) };
}

/** Texts sampled from the model at temperature 1, which it must not forget. */
export async function sampleOwnTexts(
  model: LearnModel,
  { numTexts, numTokens, seed }: { numTexts: number; numTokens: number; seed: number },
): Promise<TrainingExample[]> {
  const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
  const random = createRandom(seed);
  const { served } = model;
  const start = model.gguf.metadata.number('tokenizer.ggml.bos_token_id', 1);
  const texts: TrainingExample[] = [];
  for (let text = 0; text < numTexts; text++) {
    const tokenIds = [start];
    while (tokenIds.length < numTokens) {
      const at = tokenIds.length - 1;
      const logits = await served.forward({
        tokenIds: [tokenIds[at]!],
        positions: [at],
        slots: [at],
        sequences: [{ firstRow: 0, numRows: 1, contextTokens: at + 1, pageIds: [0, 1, 2, 3, 4, 5, 6, 7] }],
        logitRows: [0],
      });
      tokenIds.push(draw(logits, random.next()));
    }
    texts.push({ tokenIds, numPromptTokens: 8 });
  }
  return texts;
}

function draw(logits: Float32Array, share: number): number {
  let max = -Infinity;
  for (const value of logits) if (value > max) max = value;
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - max);
  let left = share * sum;
  for (let id = 0; id < logits.length; id++) {
    left -= Math.exp(logits[id]! - max);
    if (left < 0) return id;
  }
  return logits.length - 1;
}
