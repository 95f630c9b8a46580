import { RuvLLMError } from '../../core/errors.ts';
import { attemptCalls } from './call-attempt.ts';
import type { CallAttempts } from './call-attempt.ts';
import { createInput, isSpace } from './input.ts';
import type { Reader } from './input.ts';
import { DEFAULT_PARSER_LIMITS, MAX_HEADER_CHARS, MAX_SPACES } from './limits.ts';
import type { ParserLimits } from './limits.ts';
import { createMarkerSearch } from './marker-search.ts';
import type { ReasoningFormat } from './reasoning.ts';
import type { OutputEvent, ToolFormat, ToolSpec } from './types.ts';

/** Options of `createOutputParser`. */
export interface OutputParserOptions {
  /** The dialect's format, even if no tool may be called, because its control texts are not content. Null: unknown. */
  format: ToolFormat | null;
  /** Tools that may be called; other calls are content. Empty for tool choice `none`. */
  tools: readonly ToolSpec[];
  /** Null: the model has no reasoning format. */
  reasoning: ReasoningFormat | null;
  /** The prompt ended inside the reasoning; see `startsInReasoning`. Default false. */
  isReasoning?: boolean;
  /**
   * `whole`: reports a call when it is complete; malformed or cut-off calls are content, character for character. `stream`: reports
   * arguments as they arrive, for output that a grammar constrains; a failed call ends as `malformed` or `truncated`. Default `whole`.
   */
  delivery?: 'whole' | 'stream';
  /** Ids for the calls. Default: `call_` and 24 random characters. */
  createId?: (index: number) => string;
  limits?: Partial<ParserLimits>;
}

/** Parses an answer in chunks, cut anywhere, and reports its parts. */
export interface OutputParser {
  push(text: string): OutputEvent[];
  /** Returns the last events and ends the parser. */
  finish(): OutputEvent[];
}

const randomId = (): string => `call_${crypto.randomUUID().replaceAll('-', '').slice(0, 24)}`;

/** A parser of one answer. It never throws; exceeding a limit is an `error` event, the last one. */
export function createOutputParser(options: OutputParserOptions): OutputParser {
  const input = createInput();
  let events: OutputEvent[] = [];
  let carry = '';
  const reader = readAnswer(options, input, (event) => {
    const last = events.at(-1);
    if (last !== undefined && (event.type === 'content' || event.type === 'reasoning') && last.type === event.type) {
      events[events.length - 1] = { type: event.type, text: last.text + event.text };
    } else events.push(event);
  });
  let isDone = false;
  const run = (): OutputEvent[] => {
    if (!isDone) isDone = reader.next().done === true;
    const reported = events;
    events = [];
    return reported;
  };
  return {
    push(text) {
      const whole = carry + text;
      // Half a surrogate pair waits for the other half: no event may end inside a character.
      const isHalf = /[\ud800-\udbff]$/.test(whole);
      carry = isHalf ? whole.slice(-1) : '';
      if (isDone) return [];
      input.text += isHalf ? whole.slice(0, -1) : whole;
      return run();
    },
    finish() {
      input.text += carry;
      carry = '';
      input.isEnded = true;
      return run();
    },
  };
}

function* readAnswer(
  options: OutputParserOptions,
  input: ReturnType<typeof createInput>,
  emit: (event: OutputEvent) => void,
): Reader<void> {
  const { reasoning, format } = options;
  const limits = { ...DEFAULT_PARSER_LIMITS, ...options.limits };
  const attempts: CallAttempts | null = format && {
    input,
    format,
    tools: new Map(options.tools.map((tool) => [tool.name, tool])),
    delivery: options.delivery ?? 'whole',
    limits,
    createId: options.createId ?? randomId,
    emit,
    numCalls: 0,
  };
  const opens = new Set(reasoning?.opens);
  const triggers = new Set(format?.triggers);
  const silent = new Set(format?.silent);
  const findInContent = createMarkerSearch([...triggers, ...silent, ...opens, ...(reasoning?.closes ?? [])]);
  const findInReasoning = createMarkerSearch(reasoning?.closes ?? []);

  let isReasoning = options.isReasoning === true && reasoning !== null;
  /** The following whitespace belongs to the preceding marker. */
  let isAfterMarker = isReasoning;
  /** Only whitespace since the last call. */
  let isAfterCall = false;
  /** No content yet, or none since the reasoning ended. */
  let isAtStart = true;
  let mayStart = (format?.startTriggers.length ?? 0) > 0;

  const tell = (text: string): void => {
    if (text === '') return;
    emit({ type: isReasoning ? 'reasoning' : 'content', text });
    isAfterCall = false;
    if (!isReasoning && text.trim() !== '') isAtStart = mayStart = false;
  };
  const drop = (numChars: number): void => {
    input.text = input.text.slice(numChars);
    input.position = 0;
  };
  const enter = (toReasoning: boolean): void => {
    isReasoning = toReasoning;
    isAfterMarker = true;
    isAtStart = true;
    mayStart = !toReasoning && (format?.startTriggers.length ?? 0) > 0;
  };

  /** Tries to read calls at the start of the held text, after `spaces`; false: the answer ended with an error. */
  function* tryCalls(trigger: string, spaces: string): Reader<boolean> {
    const result = yield* attemptCalls(attempts!, trigger);
    if (result === 'tooLong' || result === 'tooMany') {
      const limit = result === 'tooLong' ? limits.maxCallChars : limits.maxCalls;
      const what = result === 'tooLong' ? 'a tool call is longer than' : 'tool calls are more than';
      const unit = result === 'tooLong' ? ' characters' : '';
      emit({ type: 'error', error: new RuvLLMError('invalid_text', `${what} ${limit}${unit}`, { data: { limit } }) });
      return false;
    }
    if (result === 'calls') {
      drop(input.position);
      isAfterCall = true;
      isAfterMarker = isAtStart = mayStart = false;
      return true;
    }
    mayStart = false;
    // A long call that the end cut off is text as a whole: a search for calls inside it could take too long.
    const isHopeless = input.isCutOff && input.isEnded && input.text.length > MAX_HEADER_CHARS;
    const numChars = isHopeless ? input.text.length : Math.min(trigger.length, 1);
    tell(spaces + input.text.slice(0, numChars));
    drop(numChars);
    return true;
  }

  for (;;) {
    if (isAfterMarker) {
      drop(/^[ \n\r\t]*/.exec(input.text)![0].length);
      if (input.text !== '') isAfterMarker = false;
    }
    if (mayStart && !isReasoning) {
      const quiet = findStart(input.text, input.isEnded, format!.startSilent ?? []);
      if (quiet !== null && quiet !== 'wait') {
        drop(quiet.at + quiet.trigger.length);
        mayStart = false;
        continue;
      }
      const start = quiet ?? findStart(input.text, input.isEnded, format!.startTriggers);
      if (start === 'wait') {
        yield;
        continue;
      }
      mayStart = false;
      if (start !== null) {
        const spaces = input.text.slice(0, start.at);
        drop(start.at);
        if (!(yield* tryCalls(start.trigger, spaces))) return;
        continue;
      }
    }
    const { at, marker } = (isReasoning ? findInReasoning : findInContent)(input.text, input.isEnded);
    let end = at;
    while (end > 0 && at - end < MAX_SPACES && isSpace(input.text[end - 1]!)) end--;
    tell(input.text.slice(0, end));
    const spaces = input.text.slice(end, at);
    if (marker === null) {
      if (input.isEnded) {
        if (!isAfterCall) tell(spaces);
        return;
      }
      drop(end);
      yield;
      continue;
    }
    drop(at);
    if (isReasoning) {
      drop(marker.length);
      enter(false);
    } else if (triggers.has(marker)) {
      if (!(yield* tryCalls(marker, spaces))) return;
    } else if (silent.has(marker)) {
      drop(marker.length);
    } else if (!opens.has(marker) && isAtStart) {
      // Some families end the reasoning even if the answer has none.
      drop(marker.length);
      enter(false);
    } else if (opens.has(marker) && (isAtStart || isAfterCall || reasoning!.isAnywhere)) {
      drop(marker.length);
      enter(true);
    } else {
      tell(spaces + marker);
      drop(marker.length);
    }
  }
}

/** A call at the start of the answer; `wait`: not enough text yet. */
function findStart(
  text: string,
  isEnded: boolean,
  triggers: readonly string[],
): { at: number; trigger: string } | 'wait' | null {
  let at = 0;
  while (at < text.length && isSpace(text[at]!)) at++;
  if (at > MAX_SPACES) return null;
  if (at === text.length) return isEnded ? null : 'wait';
  const remainder = text.slice(at);
  const trigger = triggers.find((one) => remainder.startsWith(one));
  if (trigger !== undefined) return { at, trigger };
  return !isEnded && triggers.some((one) => one.startsWith(remainder)) ? 'wait' : null;
}
