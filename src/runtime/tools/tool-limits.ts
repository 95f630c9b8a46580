import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, type OptionReaders } from '../../core/options.ts';

/** Bounds on the tool calls of one request. */
export interface ToolLimits {
  /** Answers of the model, the last one included. Default 16. */
  readonly maxRounds: number;
  /** Calls of all rounds. Default 64. */
  readonly maxCalls: number;
  /** Calls of the same tool with the same arguments: a model that goes in circles is stopped. Default 3. */
  readonly maxRepeats: number;
}

export const TOOL_LIMIT_READERS: OptionReaders<ToolLimits> = {
  maxRounds: integerOption(16, 1, 1000),
  maxCalls: integerOption(64, 1, 10_000),
  maxRepeats: integerOption(3, 1, 1000),
};

export const DEFAULT_TOOL_LIMITS: ToolLimits = { maxRounds: 16, maxCalls: 64, maxRepeats: 3 };

/** JSON with sorted keys: the same arguments in another order are the same call. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** Counts rounds and calls. Throws `limit_exceeded` at the first one beyond a limit. */
export function createToolCounter({ maxRounds, maxCalls, maxRepeats }: ToolLimits) {
  let [numRounds, numCalls] = [0, 0];
  const repeats = new Map<string, number>();
  const exceed = (limit: keyof ToolLimits, max: number, message: string): never => {
    throw new RuvLLMError('limit_exceeded', `${message}; the limit ${limit} is ${max}`, {
      data: { limit: max, option: limit },
    });
  };
  return {
    startRound(): void {
      if (++numRounds > maxRounds)
        exceed('maxRounds', maxRounds, `the model still calls tools after ${maxRounds} answers`);
    },
    count(name: string, args: unknown): void {
      if (++numCalls > maxCalls) exceed('maxCalls', maxCalls, `the model has called tools ${maxCalls} times`);
      const key = canonical([name, args]);
      const times = (repeats.get(key) ?? 0) + 1;
      repeats.set(key, times);
      if (times > maxRepeats) {
        exceed('maxRepeats', maxRepeats, `the model calls ${name} with the same arguments for the ${times}th time`);
      }
    },
  };
}
