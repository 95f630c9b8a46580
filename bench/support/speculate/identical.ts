import type { GenerateOptions, Model } from '../../../src/index.ts';

const SCHEMA = {
  type: 'object',
  properties: { hero: { type: 'string', maxLength: 16 }, age: { type: 'integer', minimum: 1, maximum: 99 }, isBrave: { type: 'boolean' } }, // prettier-ignore
  required: ['hero', 'age', 'isBrave'],
  additionalProperties: false,
};

/** Ways to choose tokens; `prediction` is partly right. */
const KINDS: readonly GenerateOptions[] = [
  { temperature: 0 },
  { temperature: 0.8 },
  { temperature: 1.2, topK: 40, topP: 0.9, minP: 0.02 },
  { temperature: 0.7, repetitionPenalty: 1.2, frequencyPenalty: 0.4 },
  { temperature: 0.5, logitBias: { 5: -5, 300: 2 }, topLogprobs: 2 },
  { temperature: 0, prediction: 'Once upon a time, there was a little girl named Lily. She loved to play.' },
  { temperature: 0.6, grammar: { type: 'json_schema', schema: SCHEMA } },
  { temperature: 0, stop: ['Lily', '.'] },
];
const STARTS = [
  'Once upon a time',
  'One day, Tom and Lily',
  'The little dog',
  'A big red ball',
  'Lily said, "',
  'There was a',
];

/** Generates the same sequences with and without drafts, several at once, and counts those that differ. */
export async function countDifferences(plain: Model, drafting: Model, numSequences: number) {
  const NUM_AT_ONCE = 8;
  let numDifferent = 0;
  let numAccepted = 0;
  for (let first = 0; first < numSequences; first += NUM_AT_ONCE) {
    const calls = Array.from({ length: NUM_AT_ONCE }, (_, i) => {
      const seed = first + i;
      const options = { ...KINDS[seed % KINDS.length]!, seed, maxTokens: 48, tenant: `tenant ${seed % 3}` };
      return { prompt: STARTS[Math.floor(seed / KINDS.length) % STARTS.length]!, options };
    });
    const ask = (model: Model) => Promise.all(calls.map(({ prompt, options }) => model.generate(prompt, options)));
    const [expected, actual] = [await ask(plain), await ask(drafting)];
    for (const [i, { tokenIds, logprobs, text, usage }] of actual.entries()) {
      const other = expected[i]!;
      const isSame = tokenIds.join() === other.tokenIds.join() && text === other.text && JSON.stringify(logprobs) === JSON.stringify(other.logprobs); // prettier-ignore
      if (!isSame) numDifferent++;
      numAccepted += usage.acceptedDraftTokens;
    }
  }
  return { numSequences, numDifferent, numAccepted };
}
