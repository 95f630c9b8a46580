import { createHash } from 'node:crypto';
import { createRandom } from '../../core/random.ts';
import { fitRouteEncoder, type RouteEncoder } from './features/route-encoder.ts';
import type { Candidate, RouteExample } from './types.ts';

export const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();

export const candidate = (id: string, pricePerToken = 0, latencyMs = 0): Candidate => ({
  id,
  kind: 'local',
  pricePerToken,
  latencyMs,
});
export const SMALL_AND_LARGE = [candidate('small', 1), candidate('large', 10)];
export const FREE = { perSecond: 0, perCost: 0 };

const SUMS = 'what is the sum of 12 and 45 minus 7 over 3'.split(' ');
const TALK = 'please write a kind letter to my dear old friend about spring'.split(' ');

/** Sums, which the small one fails, and letters, which both can do; a group for every ten. */
export function sumsAndLetters(count: number, seed: number): { text: string; isHard: boolean; group: string }[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, i) => {
    const isHard = random.next() < 0.5;
    const words = isHard ? SUMS : TALK;
    const text = Array.from({ length: 8 }, () => words[Math.floor(random.next() * words.length)]!).join(' ');
    return { text, isHard, group: `group ${Math.floor(i / 10)}` };
  });
}

export function learnable(
  count: number,
  seed: number,
  fitted?: RouteEncoder,
): { encoder: RouteEncoder; examples: RouteExample[] } {
  const data = sumsAndLetters(count, seed);
  const requests = data.map(({ text }) => ({ turns: [text] }));
  const encoder = fitted ?? fitRouteEncoder(requests, { numBuckets: 512, embedding: 16 });
  const examples = data.map(({ isHard, group }, i) => ({
    input: encoder.encode(requests[i]!),
    outcomes: Float32Array.of(isHard ? 0 : 1, 1),
    group,
  }));
  return { encoder, examples };
}
