import { assert } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { createConstrainedSampler } from '../../sampling/constrained-sampler.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';
import type { Sampler } from '../../sampling/types.ts';
import type { Constraints } from '../constraints.ts';
import type { GenerateRequest, SlowGrammar } from '../protocol.ts';
import { createGrammarSampler, createSlowSampler, type GrammarText, isTooSlow } from './grammar-sampler.ts';
import type { SamplerClient } from './sampler-client.ts';

/** The sampler of a text under a grammar; `thread` samples under slow ones, and null means that there is none. */
export function openGrammarSampler(
  grammar: GrammarSource | SlowGrammar,
  { automata, sampling, promptIds, maxTokens, stopIds }: GenerateRequest,
  constraints: Constraints,
  thread: SamplerClient | null,
): Sampler {
  const textOf = (write: () => string): GrammarText => ({
    grammar: write,
    automata,
    sampling,
    promptIds,
    maxTokens,
    stopIds,
  });
  if (grammar.type === 'slow') {
    assert(thread !== null, 'slow grammars need a sampler thread');
    return createSlowSampler(
      textOf(() => grammar.text),
      thread,
    );
  }
  if (thread === null) {
    const matcher = constraints.open(grammar, automata);
    return createConstrainedSampler(sampling, createRandom(sampling.seed), matcher, { maxTokens, endIds: stopIds });
  }
  const text = textOf(() => JSON.stringify(grammar));
  try {
    return createGrammarSampler(text, constraints.open(grammar, automata), thread);
  } catch (error) {
    if (!isTooSlow(error)) throw error;
    return createSlowSampler(text, thread);
  }
}
