import type { TokenSample } from '../../../src/learning/micro-lora/types.ts';
import { importBuilt } from '../dist.ts';
import { percentile } from '../report.ts';
import { openPupils } from './pupil.ts';

export interface UpdateTimes {
  readonly numTokens: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const NUM_TOP = 64;
const NUM_UPDATES = 100;
const NUM_PROBES = 64;

/** Times of complete steps of the instant loop, with 64 tokens of probes, at the sizes of a 1B model. */
export async function timeMicroLora(numTokens: number, hiddenDim = 2048, vocabSize = 32_000): Promise<UpdateTimes> {
  const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
  const random = createRandom(1);
  const id = (): number => Math.floor(random.next() * vocabSize);
  const sample = (): TokenSample => {
    const ids = [...new Set(Array.from({ length: NUM_TOP }, id))];
    return {
      hidden: Float32Array.from({ length: hiddenDim }, () => random.next() * 2 - 1),
      label: id(),
      ids,
      logits: ids.map(() => random.next() * 5),
      labelLogit: 3,
      logSumExp: 9,
    };
  };
  const lora = (await openPupils({ hiddenDim, vocabSize }, Array.from({ length: NUM_PROBES }, sample)))();
  const answers = Array.from({ length: 10 }, () => Array.from({ length: numTokens }, sample));
  const times: number[] = [];
  for (let i = 0; i < NUM_UPDATES; i++) {
    const start = performance.now();
    lora.teach(answers[i % answers.length]!, { quality: i % 3 === 0 ? 0 : 1, name: String(i % answers.length) });
    times.push(performance.now() - start);
  }
  // The first ones run before compilation.
  const warm = times.slice(30).sort((a, b) => a - b);
  return { numTokens, p50Ms: percentile(warm, 0.5), p99Ms: percentile(warm, 0.99) };
}
