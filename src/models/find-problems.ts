import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile } from '../gguf/index.ts';
import { findArchitecture } from './registry.ts';
import { readShape } from './shape.ts';
import { createWeightLoader, type WeightSink } from './weight-loader.ts';

const SINK: WeightSink = {
  matrix: ({ name, type, numRows, numCols }) => ({ name, type, numRows, numCols, offset: 0, sizeBytes: 0 }),
  vector: () => 0,
};

/** Reasons why a model cannot be loaded: its architecture, metadata, missing or misshapen tensors. Empty: none found. */
export function findModelProblems(gguf: GgufFile): RuvLLMError[] {
  const problems: RuvLLMError[] = [];
  try {
    const architecture = findArchitecture(gguf.metadata.string('general.architecture'));
    const shape = readShape(gguf);
    const decoder = architecture.open({ gguf, shape, maxContextTokens: shape.contextLength });
    decoder.bind(createWeightLoader(gguf, SINK, (problem) => problems.push(problem)));
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    problems.push(error);
  }
  return problems;
}
