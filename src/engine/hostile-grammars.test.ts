import { describe, expect, test } from 'vitest';
import { HOSTILE_GRAMMARS } from '../../test/support/hostile-grammars.ts';
import { RuvLLMError } from '../core/errors.ts';
import { createRandom } from '../core/random.ts';
import { createConstraints, ENGINE_LIMITS, type VocabularyData } from './constraints.ts';
import { createConstrainedSampler } from '../sampling/constrained-sampler.ts';
import { resolveGenerateParams } from '../sampling/generate-params.ts';
import { recordGrammar } from '../sampling/grammar/compile.ts';
import type { GrammarSource } from '../sampling/grammar/types.ts';

/** As in the grammar thread. */
const MAX_STEPS = 8_000_000;
/**
 * Processor time, not wall time: a busy machine does not change it. The limit of the thread is 2 s; slow or emulated machines
 * need more, a step that costs too much takes minutes.
 */
const MAX_CPU_MS = 15_000;

const WORDS = Array.from({ length: 16 }, (_, i) => 'a'.repeat(i + 2)).concat('{"', '":', '", "', '"}', 'value ', '],');
const END = 256 + WORDS.length;
const encoder = new TextEncoder();
const spellings = Array.from({ length: END + 1 }, (_, id) =>
  id < 256 ? Uint8Array.of(id) : encoder.encode(WORDS[id - 256] ?? ''),
);
const vocabulary: VocabularyData = {
  bytes: Uint8Array.from(spellings.flatMap((one) => [...one])),
  offsets: Int32Array.from({ length: END + 2 }, (_, id) =>
    spellings.slice(0, id).reduce((sum, { length }) => sum + length, 0),
  ),
  isControl: Uint8Array.from({ length: END + 1 }, (_, id) => Number(id === END)),
  endIds: [END],
};

/** Compiles and samples as the server does; the refusal, or null. */
function run(source: GrammarSource): unknown {
  const { maxPreparedSteps, maxStretchSteps, maxStepsPerToken } = ENGINE_LIMITS;
  try {
    const { automata, numSteps, numStretchSteps } = recordGrammar(source, { maxSteps: MAX_STEPS, maxStepsPerToken });
    if (numSteps > maxPreparedSteps || numStretchSteps > maxStretchSteps) {
      return new RuvLLMError('unsupported', `${numSteps} steps`);
    }
    const constraints = createConstraints();
    constraints.setVocabulary(vocabulary);
    while (!constraints.prepare(source, automata));
    const matcher = constraints.open(source, automata);
    const sampler = createConstrainedSampler(
      { ...resolveGenerateParams({ temperature: 1, topP: 1, topK: 0 }), seed: 1 },
      createRandom(1),
      matcher,
      { maxTokens: 4000, endIds: [END] },
    );
    const random = createRandom(2);
    const logits = new Float32Array(END + 1);
    for (let i = 0; i < 20; i++) {
      for (let id = 0; id <= END; id++) logits[id] = random.next() * 5 - (id === END ? 9 : 0);
      if (sampler.sample(logits, []).tokenId === END) break;
    }
    return null;
  } catch (error) {
    return error;
  }
}

describe('[G8] hostile grammars', () => {
  test('there are at least 40', () => expect(Object.keys(HOSTILE_GRAMMARS).length).toBeGreaterThanOrEqual(40));

  test.each(Object.entries(HOSTILE_GRAMMARS))('%s', (_, create) => {
    const source = create();
    const before = process.cpuUsage();
    const refusal = run(source);
    const { user, system } = process.cpuUsage(before);
    if (refusal !== null) {
      expect(refusal).toBeInstanceOf(RuvLLMError);
      const { code, message } = refusal as RuvLLMError;
      expect(['unsupported', 'invalid_option']).toContain(code);
      expect(message).toMatch(/\d/);
    }
    expect((user + system) / 1000).toBeLessThan(MAX_CPU_MS);
  });
});
