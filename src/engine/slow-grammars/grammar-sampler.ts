import { RuvLLMError } from '../../core/errors.ts';
import { createRandom, type Random } from '../../core/random.ts';
import { checkLogits } from '../../sampling/check-logits.ts';
import { createConstrainedSampler } from '../../sampling/constrained-sampler.ts';
import type { TokenMatcher } from '../../sampling/grammar/index.ts';
import type { Sampler } from '../../sampling/types.ts';
import type { RemoteText, SamplerClient } from './sampler-client.ts';
import type { SlowText } from './types.ts';

/** Bytes of the longest completion that the engine spells itself. */
const MAX_SPELLED_BYTES = 4096;

/** A text that starts; its grammar is written out only where it is sent. */
export interface GrammarText extends Omit<SlowText, 'grammar' | 'generatedIds' | 'numDraws'> {
  readonly grammar: () => string;
}

/** Samples in the sampler thread from the first token on. */
export function createSlowSampler(text: GrammarText, thread: SamplerClient): Sampler {
  const remote = thread.open({ ...text, grammar: text.grammar(), generatedIds: [], numDraws: 0 });
  return { sample: neverHere, sampleAside: (logits) => sampleIn(remote, logits), close: () => remote.close() };
}

/**
 * Samples in the engine as long as that is quick. The first token that takes too many steps moves the text to the sampler thread,
 * which gives the same tokens: otherwise all sequences of the engine would wait for that grammar.
 */
export function createGrammarSampler(text: GrammarText, matcher: TokenMatcher, thread: SamplerClient): Sampler {
  const { sampling, maxTokens, stopIds, promptIds } = text;
  const random = countDraws(createRandom(sampling.seed));
  const options = { maxTokens, endIds: stopIds, maxSpelledBytes: MAX_SPELLED_BYTES };
  const own = createConstrainedSampler(sampling, random, matcher, options);
  let numDraws = 0;
  let remote: RemoteText | null = null;
  return {
    sample: neverHere,
    sampleAside(logits, history) {
      if (remote !== null) return sampleIn(remote, logits);
      try {
        const token = own.sample(logits, history);
        numDraws = random.numDraws;
        return token;
      } catch (error) {
        if (!isTooSlow(error)) throw error;
        const generatedIds = history.slice(promptIds.length);
        remote = thread.open({ ...text, grammar: text.grammar(), generatedIds, numDraws });
        return sampleIn(remote, logits);
      }
    },
    draft: (maxTokens) => (remote === null ? own.draft!(maxTokens) : []),
    close: () => remote?.close(),
  };
}

/** Whether a grammar exceeded the steps of the engine, not those of the sampler thread. */
export const isTooSlow = (error: unknown): boolean =>
  error instanceof RuvLLMError && error.code === 'unsupported' && error.data.reason === 'steps';

function sampleIn(remote: RemoteText, logits: Float32Array): ReturnType<RemoteText['sample']> {
  checkLogits(logits); // before the pages that gave them are shared
  return remote.sample(logits);
}

function neverHere(): never {
  throw new RuvLLMError('internal', 'a text under a grammar was sampled without its thread');
}

function countDraws(random: Random): Random & { readonly numDraws: number } {
  let numDraws = 0;
  return {
    get numDraws() {
      return numDraws;
    },
    next() {
      numDraws++;
      return random.next();
    },
  };
}
