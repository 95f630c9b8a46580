import { RuvLLMError } from '../core/errors.ts';
import type { ExpertRules } from './experts.ts';
import { readFactor, readNumber } from './metadata-keys.ts';
import { readCount } from './read-count.ts';
import type { ModelFile } from './types.ts';

/** The scores of routers by their number in files. */
const SCORES: Readonly<Record<number, ExpertRules['scores']>> = { 1: 'softmax', 2: 'sigmoid', 3: 'chosen-softmax' };

/** The choice of experts as the metadata describes it; `defaults` where a key is missing. */
export function readExpertRules(file: ModelFile, defaults: Pick<ExpertRules, 'scores' | 'isNormalized'>): ExpertRules {
  const { gguf, shape } = file;
  const key = (name: string): string => `${shape.architecture}.${name}`;
  const { numExperts, numUsed } = shape.experts!;
  const numGroups = readCount(gguf.metadata, key('expert_group_count'), numExperts, 1);
  const numUsedGroups = readCount(gguf.metadata, key('expert_group_used_count'), numGroups, numGroups);
  // A group is chosen by its two best experts.
  const isPossible = numGroups === 1 || (numExperts % numGroups === 0 && numExperts / numGroups >= 2);
  if (!isPossible || numUsed > (numExperts / numGroups) * numUsedGroups) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${shape.architecture}: cannot choose ${numUsed} of ${numExperts} experts from ${numUsedGroups} of ${numGroups} groups`,
      { data: { numExperts, numUsed, numGroups, numUsedGroups } },
    );
  }
  return {
    scores: readScores(file, key('expert_gating_func'), defaults.scores),
    isNormalized: gguf.metadata.boolean(key('expert_weights_norm'), defaults.isNormalized),
    scale: readFactor(file, 'expert_weights_scale', 1),
    numGroups,
    numUsedGroups,
  };
}

/** Old files have no key, or 0. */
function readScores(file: ModelFile, key: string, defaultScores: ExpertRules['scores']): ExpertRules['scores'] {
  const value = readNumber(file, 'expert_gating_func', 0);
  const scores = value === 0 ? defaultScores : SCORES[value];
  if (scores !== undefined) return scores;
  const message = `metadata key "${key}" is ${value}, supported are 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen)`;
  throw new RuvLLMError('unsupported', message, { data: { key, value } });
}
