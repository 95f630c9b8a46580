import { RuvLLMError } from '../core/errors.ts';
import type { SamplerStep } from './step.ts';

export const LOGIT_BIAS: SamplerStep = {
  name: 'logit-bias',
  kind: 'shape',
  isActive: (params) => params.logitBias.size > 0,
  names: ({ logitBias }) => logitBias.keys(),
  apply({ values, count }, { logitBias }) {
    for (const [id, bias] of logitBias) {
      if (id < 0 || id >= count) {
        throw new RuvLLMError('invalid_token', `logit bias for token ${id}, but the vocabulary has ${count}`, {
          data: { tokenId: id, vocabSize: count },
        });
      }
      values[id] = (values[id] as number) + bias;
    }
  },
};
