import { createRandom } from '../../src/core/random.ts';

export interface TraceRequest {
  readonly conversation: number;
  readonly prompt: string;
}

const WORDS = 'dog cat girl boy tree house ball park river story friend garden happy little red blue big small old new'.split(' '); // prettier-ignore

/** Conversations that grow turn by turn, their turns in random order among each other, as agents at work send them. */
export function createFleetTrace(options: {
  readonly numConversations: number;
  readonly numTurns: number;
  readonly firstWords: number;
  readonly turnWords: number;
  readonly seed: number;
}): readonly TraceRequest[] {
  const { numConversations, numTurns, firstWords, turnWords, seed } = options;
  const random = createRandom(seed);
  const words = (count: number): string =>
    Array.from({ length: count }, () => WORDS[Math.floor(random.next() * WORDS.length)]).join(' ');
  const prompts = Array.from({ length: numConversations }, () => words(firstWords));
  const trace: TraceRequest[] = [];
  for (let turn = 0; turn < numTurns; turn++) {
    const order = prompts.map((_, index) => ({ index, key: random.next() })).sort((a, b) => a.key - b.key);
    for (const { index } of order) {
      prompts[index] += ` ${words(turnWords)}`;
      trace.push({ conversation: index, prompt: prompts[index]! });
    }
  }
  return trace;
}
