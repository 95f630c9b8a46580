import type { CallContext, OutputEvent, ToolFormat, ToolSpec } from './types.ts';
import type { Input, Reader } from './input.ts';
import type { ParserLimits } from './limits.ts';

export interface CallAttempts {
  readonly input: Input;
  readonly format: ToolFormat;
  readonly tools: ReadonlyMap<string, ToolSpec>;
  readonly delivery: 'whole' | 'stream';
  readonly limits: ParserLimits;
  createId(index: number): string;
  emit(event: OutputEvent): void;
  numCalls: number;
}

/** `none`: not a call, and the input is back at its start; `tooLong`, `tooMany`: a limit was reached. */
export type AttemptResult = 'calls' | 'none' | 'tooLong' | 'tooMany';

/** Reads calls from the trigger at the start of the held text; leaves the input after the reported text. */
export function* attemptCalls(attempts: CallAttempts, trigger: string): Reader<AttemptResult> {
  const { input, tools, limits, createId } = attempts;
  const isStreamed = attempts.delivery === 'stream';
  input.position = trigger.length;
  input.limit = limits.maxCallChars;
  input.isOverLimit = false;
  input.isCutOff = false;
  let pendingEvents: OutputEvent[] = [];
  let isOpen = false;
  let isTooMany = false;
  let hasReported = false;
  /** Position after all reported text that is final. */
  let safe = 0;
  const emit = (event: OutputEvent): void => {
    if (!isStreamed) {
      pendingEvents.push(event);
      return;
    }
    attempts.emit(event);
    hasReported = true;
    safe = input.position;
  };
  const context: CallContext = {
    input,
    trigger,
    tool(name) {
      if (!tools.has(name)) return undefined;
      isTooMany ||= attempts.numCalls >= limits.maxCalls;
      return isTooMany ? undefined : tools.get(name);
    },
    begin(name) {
      isOpen = true;
      const index = attempts.numCalls;
      emit({ type: 'toolCallStart', index, id: createId(index), name });
    },
    argument: (text) => emit({ type: 'toolCallArguments', index: attempts.numCalls, text }),
    end() {
      emit({ type: 'toolCallEnd', index: attempts.numCalls, outcome: 'complete' });
      for (const event of pendingEvents) attempts.emit(event);
      pendingEvents = [];
      isOpen = false;
      hasReported = true;
      safe = input.position;
      attempts.numCalls++;
    },
    isOpen: () => isOpen,
    release() {
      if (!isStreamed || !isOpen) return;
      input.text = input.text.slice(input.position);
      input.limit -= input.position;
      input.position = 0;
      safe = 0;
    },
  };
  const isWhole = yield* attempts.format.parse(context);
  input.limit = Infinity;
  if (isWhole && !isOpen) return 'calls';
  if (isOpen && isStreamed) {
    const outcome = input.isCutOff ? 'truncated' : 'malformed';
    if (!input.isOverLimit) attempts.emit({ type: 'toolCallEnd', index: attempts.numCalls, outcome });
    attempts.numCalls++;
  }
  input.position = safe;
  if (input.isOverLimit) return 'tooLong';
  if (isTooMany) return 'tooMany';
  return hasReported ? 'calls' : 'none';
}
