import { RuvLLMError } from '../../core/errors.ts';
import type { TemplateLimits } from './limits.ts';

/** Counts the cost of one render; every method throws `template_error` when its limit is exceeded. */
export interface Budget {
  /** One evaluated node. */
  step(): void;
  /** `chars` read or written; called before the work. */
  work(chars: number): void;
  /** Called before a string of `chars` is created. */
  text(chars: number): void;
  /** Called before `added` characters are appended; the block's text then has `total`. */
  output(total: number, added: number): void;
  /** Called before a list or mapping of `count` elements is created. */
  items(count: number): void;
  /** One more nested evaluation; pair with `leave`. */
  enter(): void;
  leave(): void;
}

/** The steps between two readings take milliseconds. */
const STEPS_PER_CLOCK_READ = 256;
const BYTES_PER_CLOCK_READ = 4_194_304;
const BYTES_PER_CHAR = 2;
const BYTES_PER_ITEM = 8;

export function createBudget(limits: TemplateLimits, now: () => number): Budget {
  const start = now();
  let steps = 0;
  let workBytes = 0;
  let workAtClockRead = 0;
  let depth = 0;

  const exceed = (limit: keyof TemplateLimits, what: string, used: number): never => {
    const message = `chat template stopped: ${used} ${what}, limit ${limits[limit]} (${limit})`;
    throw new RuvLLMError('template_error', message, { data: { limit, used, max: limits[limit] } });
  };
  const readClock = (): void => {
    const elapsedMs = now() - start;
    if (elapsedMs > limits.maxTimeMs) exceed('maxTimeMs', 'milliseconds', elapsedMs);
  };
  const spend = (bytes: number): void => {
    workBytes += bytes;
    if (!(workBytes <= limits.maxWorkBytes)) exceed('maxWorkBytes', 'bytes of work', workBytes);
    if (workBytes - workAtClockRead >= BYTES_PER_CLOCK_READ) {
      workAtClockRead = workBytes;
      readClock();
    }
  };
  const checkText = (chars: number): void => {
    const bytes = chars * BYTES_PER_CHAR;
    if (!(bytes <= limits.maxTextBytes)) exceed('maxTextBytes', 'bytes in one string', bytes);
  };

  return {
    step() {
      if (++steps > limits.maxSteps) exceed('maxSteps', 'steps', steps);
      if (steps % STEPS_PER_CLOCK_READ === 0) readClock();
    },
    work: (chars) => spend(chars * BYTES_PER_CHAR),
    text(chars) {
      checkText(chars);
      spend(chars * BYTES_PER_CHAR);
    },
    output(total, added) {
      checkText(total);
      spend(added * BYTES_PER_CHAR);
    },
    items(count) {
      if (!(count <= limits.maxItems)) exceed('maxItems', 'elements in one list', count);
      spend(count * BYTES_PER_ITEM);
    },
    enter() {
      if (++depth > limits.maxDepth) exceed('maxDepth', 'nested evaluations', depth);
    },
    leave() {
      depth--;
    },
  };
}
