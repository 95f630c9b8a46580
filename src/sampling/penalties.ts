import { RuvLLMError } from '../core/errors.ts';
import type { SamplerStep } from './step.ts';
import type { SamplingParams } from './types.ts';

const windowStart = ({ penaltyWindow }: SamplingParams, history: readonly number[]): number =>
  penaltyWindow < 0 ? 0 : Math.max(0, history.length - penaltyWindow);

/** Repetition (multiplicative), presence and frequency (additive) penalties over the last tokens, counted as in llama.cpp. */
export const PENALTIES: SamplerStep = {
  name: 'penalties',
  kind: 'shape',
  isActive: (params) =>
    params.penaltyWindow !== 0 &&
    (params.repetitionPenalty !== 1 || params.presencePenalty !== 0 || params.frequencyPenalty !== 0),
  names: (params, history) => history.slice(windowStart(params, history)),
  apply({ values, count }, params, history) {
    const { repetitionPenalty, presencePenalty, frequencyPenalty } = params;
    const start = windowStart(params, history);
    const occurrences = new Map<number, number>();
    for (let i = start; i < history.length; i++) {
      const id = history[i] as number;
      if (!(id >= 0 && id < count)) {
        throw new RuvLLMError('invalid_token', `history has token ${id} at ${i}, but the vocabulary has ${count}`, {
          data: { tokenId: id, index: i, vocabSize: count },
        });
      }
      occurrences.set(id, (occurrences.get(id) ?? 0) + 1);
    }
    for (const [id, times] of occurrences) {
      const value = values[id] as number;
      // Dividing a negative logit would make the token likelier.
      const repeated = value > 0 ? value / repetitionPenalty : value * repetitionPenalty;
      values[id] = repeated - times * frequencyPenalty - presencePenalty;
    }
  },
};
