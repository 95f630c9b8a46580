import { RuvLLMError, serializeError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { createConstrainedSampler } from '../../sampling/constrained-sampler.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';
import type { SampledToken, Sampler } from '../../sampling/types.ts';
import { type Constraints, createConstraints } from '../constraints.ts';
import type { SamplerAnswer, SamplerTask, SlowText } from './types.ts';

interface OpenText {
  readonly text: SlowText;
  /** Prompt and generated tokens. */
  readonly history: number[];
  /** Created with the first token, so that an error is the reply to it. */
  sampler: Sampler | null;
}

/** The sampler thread: continues texts under grammars one token at a time, in the order of the requests. */
export function createSamplerServer(post: (answer: SamplerAnswer) => void) {
  const constraints = createConstraints();
  const texts = new Map<number, OpenText>();

  function sample(id: number, logits: Float32Array): SampledToken {
    const open = texts.get(id);
    if (open === undefined) throw new RuvLLMError('internal', `text ${id} is not open in the sampler thread`);
    open.sampler ??= resume(constraints, open.text);
    const token = open.sampler.sample(logits, open.history);
    open.history.push(token.tokenId);
    return token;
  }

  return {
    handle(task: SamplerTask): void {
      if (task.type === 'vocabulary') constraints.setVocabulary(task.vocabulary);
      else if (task.type === 'tokenTable') constraints.setTable(task.table);
      else if (task.type === 'close') texts.delete(task.id);
      else if (task.type === 'open') {
        const { text } = task;
        texts.set(task.id, { text, history: [...text.promptIds, ...text.generatedIds], sampler: null });
      } else {
        try {
          post({ id: task.id, token: sample(task.id, task.logits) });
        } catch (error) {
          post({ id: task.id, error: serializeError(error) });
        }
      }
    },
  };
}

/** The sampler as it was in the engine after the tokens that were generated there. */
function resume(constraints: Constraints, text: SlowText): Sampler {
  const { sampling, automata, generatedIds, maxTokens, stopIds } = text;
  const matcher = constraints.open(JSON.parse(text.grammar) as GrammarSource, automata);
  for (const id of generatedIds) {
    if (!matcher.accept(id)) throw new RuvLLMError('internal', `token ${id} was generated outside the grammar`);
  }
  const random = createRandom(sampling.seed);
  for (let i = 0; i < text.numDraws; i++) random.next();
  return createConstrainedSampler(sampling, random, matcher, {
    maxTokens: maxTokens - generatedIds.length,
    endIds: stopIds,
  });
}
