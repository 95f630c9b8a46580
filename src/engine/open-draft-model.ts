import { RuvLLMError } from '../core/errors.ts';
import type { ModelSpec } from './protocol.ts';
import { vocabularyDifference } from '../gguf/same-vocabulary.ts';
import type { GgufFile } from '../gguf/types.ts';
import { stateBytesOf } from '../models/index.ts';
import { readShape } from '../models/shape.ts';
import type { LoadedModel } from '../models/types.ts';

/** Sequences of full length that its KV cache holds; further ones are not drafted for. */
const MAX_SEQUENCES = 4;

export interface DraftModelOptions {
  readonly openFile: (path: string) => GgufFile | Promise<GgufFile>;
  readonly load: (spec: ModelSpec, gguf: GgufFile) => Promise<LoadedModel>;
  readonly warn: (message: string) => void;
}

/** Loads the draft model of a spec; null, with a warning, if it cannot serve this model. */
export async function openDraftModel(
  spec: ModelSpec,
  target: GgufFile,
  { openFile, load, warn }: DraftModelOptions,
): Promise<LoadedModel | null> {
  if (spec.draftPath === null) return null;
  try {
    const gguf = await openFile(spec.draftPath);
    try {
      const problem = findProblem(target, gguf);
      if (problem === null) return await load(specOf(spec, readShape(gguf).contextLength), gguf);
      warn(`the draft model ${spec.draftPath} is not used: ${problem}`);
    } finally {
      gguf.source.close();
    }
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    warn(`the draft model ${spec.draftPath} is not used: ${error.message}`);
  }
  return null;
}

function findProblem(target: GgufFile, draft: GgufFile): string | null {
  const difference = vocabularyDifference(target.metadata, draft.metadata);
  if (difference !== null) return difference;
  const [own, other] = [weightBytesOf(target), weightBytesOf(draft)];
  if (other >= own) return `it has ${other} bytes of weights, the model ${own}`;
  if (!readShape(draft).isCausal) return 'it is an encoder';
  // A state that has seen a wrong guess cannot go back.
  return stateBytesOf(draft) > 0 ? 'it has recurrent layers' : null;
}

const weightBytesOf = ({ tensors }: GgufFile): number => {
  let sizeBytes = 0;
  for (const tensor of tensors.values()) sizeBytes += tensor.sizeBytes;
  return sizeBytes;
};

function specOf(spec: ModelSpec, contextLength: number): ModelSpec {
  const maxContext = Math.min(spec.maxContext, contextLength);
  return {
    ...spec,
    path: spec.draftPath!,
    maxContext,
    isContextGiven: false,
    kvCacheTokens: maxContext * Math.min(spec.maxSequences, MAX_SEQUENCES),
    memoryBudgetBytes: null,
    kvPacking: 'off',
    speculation: 'off',
    draftPath: null,
    spill: null,
    shared: null,
    blockSalt: null,
    repackCache: 'off',
  };
}
