import { withCompetitor } from './competitor.ts';
import type { Answer, Contestant, Request } from './contestant.ts';

export interface RaceSettings {
  readonly numThreads: number;
  readonly numRounds: number;
  readonly numPrompt: number;
  readonly numDecode: number;
  /** Tokens of context before the first decoded one. */
  readonly depth: number;
}

/** A task timed once per round. */
export interface Task {
  readonly title: string;
  readonly unit: 'tok/s' | 'ms';
  readonly numSequences: number;
  /** Maximum tokens of one sequence. */
  maxTokens(settings: RaceSettings): number;
  run(contestant: Contestant, settings: RaceSettings, isWarmUp: boolean): Promise<Answer>;
}

export type TaskName = 'prefill' | 'decode' | 'decodeDeep' | 'decodeBatch' | 'decodeContended' | 'firstToken';

/** Enough to touch all memory of decoding. */
const WARM_UP_TOKENS = 16;
const WARM_UP_PROMPT = 128;
const DEEP = 4096;
const BATCH = 8;
const BATCH_PROMPT = 16;
const SMALL_PROMPT = 100;
const SMALL_REPEATS = 15;

const decode = (
  contestant: Contestant,
  { numDecode }: RaceSettings,
  isWarmUp: boolean,
  { numSequences = 1, depth }: { numSequences?: number; depth: number },
): Promise<Answer> => {
  const numTokens = isWarmUp ? Math.min(numDecode, WARM_UP_TOKENS) : numDecode;
  const request: Request = { do: 'decode', numTokens, numSequences, depth: Math.max(1, depth) };
  return contestant.ask(request);
};

export const TASKS: Readonly<Record<TaskName, Task>> = {
  prefill: {
    title: 'prompt',
    unit: 'tok/s',
    numSequences: 1,
    maxTokens: ({ numPrompt }) => numPrompt + 1,
    run: (contestant, { numPrompt }, isWarmUp) =>
      contestant.ask({ do: 'prefill', numTokens: isWarmUp ? Math.min(numPrompt, WARM_UP_PROMPT) : numPrompt }),
  },
  decode: {
    title: 'decode',
    unit: 'tok/s',
    numSequences: 1,
    maxTokens: ({ numDecode, depth }) => depth + numDecode + 2,
    run: (contestant, settings, isWarmUp) => decode(contestant, settings, isWarmUp, { depth: settings.depth }),
  },
  decodeDeep: {
    title: `decode after ${DEEP}`,
    unit: 'tok/s',
    numSequences: 1,
    maxTokens: ({ numDecode }) => DEEP + numDecode + 2,
    run: (contestant, settings, isWarmUp) => decode(contestant, settings, isWarmUp, { depth: isWarmUp ? 1 : DEEP }),
  },
  decodeBatch: {
    title: `decode ${BATCH} at once`,
    unit: 'tok/s',
    numSequences: BATCH,
    maxTokens: ({ numDecode }) => BATCH_PROMPT + numDecode + 2,
    run: (contestant, settings, isWarmUp) =>
      decode(contestant, settings, isWarmUp, { numSequences: BATCH, depth: BATCH_PROMPT }),
  },
  decodeContended: {
    title: 'decode, one core busy',
    unit: 'tok/s',
    numSequences: 1,
    maxTokens: ({ numDecode, depth }) => depth + numDecode + 2,
    // Fewer tokens: an engine under pressure takes many times as long.
    run: (contestant, { numDecode, ...settings }, isWarmUp) =>
      withCompetitor(() =>
        decode(contestant, { ...settings, numDecode: Math.ceil(numDecode / 4) }, isWarmUp, { depth: settings.depth }),
      ),
  },
  firstToken: {
    title: `first token after ${SMALL_PROMPT}`,
    unit: 'ms',
    numSequences: 1,
    maxTokens: () => SMALL_PROMPT + 1,
    run: (contestant) => contestant.ask({ do: 'first-token', numPrompt: SMALL_PROMPT, repeats: SMALL_REPEATS }),
  },
};
