import type { OutputParser } from '../../chat/tools/output-parser.ts';
import type { OutputEvent } from '../../chat/tools/types.ts';
import { createStopMatcher, type StopMatcher } from '../../sampling/stop-matcher.ts';
import type { ToolCallDelta } from '../generation-types.ts';
import { type AnswerPiece, type AnswerReader, type AnswerStep, NO_CALLS } from './answer-reader.ts';

export interface ParsedReaderOptions {
  readonly decode: { push(tokenId: number): string; flush(): string };
  readonly parser: OutputParser;
  /** Looked for in what is said, not in thoughts and calls. */
  readonly stops: readonly string[];
  /** The answer ends with its first call. */
  readonly isOneCall: boolean;
}

/** Tells what is said from what is thought and called. */
export function createParsedReader({ decode, parser, stops, isOneCall }: ParsedReaderOptions): AnswerReader {
  let stopMatcher: StopMatcher = createStopMatcher(stops);
  let pieces: { reasoning: string; text: string; toolCalls: ToolCallDelta[] }[] = [];
  let isStopped = false;
  let isCut = false;
  let stopString: string | null = null;
  /** Of the call that is open. */
  let call = { index: 0, id: '', name: '' };
  let numCalls = 0;
  let numReasoningTokens = 0;
  /** Tokens whose text is not known to be anything yet. */
  let numPending = 0;
  let wasReasoning = false;

  /** A piece that still may have more of the kind: later kinds have not been told in it. */
  function pieceFor(kind: 'reasoning' | 'text' | 'call') {
    const last = pieces.at(-1);
    const isLate =
      last !== undefined &&
      kind !== 'call' &&
      (last.toolCalls.length > 0 || (kind === 'reasoning' && last.text !== ''));
    if (last !== undefined && !isLate) return last;
    pieces.push({ reasoning: '', text: '', toolCalls: [] });
    return pieces.at(-1)!;
  }

  function say({ emit, stopped, stopString: found }: ReturnType<StopMatcher['push']>): void {
    if (emit !== '') pieceFor('text').text += emit;
    if (!stopped) return;
    isStopped = true;
    stopString = found ?? stopString;
  }

  /** No stop string goes on behind a thought or a call. */
  function endText(): void {
    say(stopMatcher.flush());
    stopMatcher = createStopMatcher(stops);
  }

  function tellCall(text: string, outcome: ToolCallDelta['outcome'], isFirst = false): void {
    pieceFor('call').toolCalls.push({ ...call, isFirst, arguments: text, outcome });
  }

  const handlers: { [T in OutputEvent['type']]: (event: Extract<OutputEvent, { type: T }>) => void } = {
    content: ({ text }) => say(stopMatcher.push(text)),
    reasoning({ text }) {
      endText();
      if (!isStopped) pieceFor('reasoning').reasoning += text;
    },
    toolCallStart({ index, id, name }) {
      endText();
      if (isStopped) return;
      call = { index, id, name };
      numCalls++;
      tellCall('', null, true);
    },
    toolCallArguments: ({ text }) => tellCall(text, null),
    toolCallEnd({ outcome }) {
      tellCall('', outcome);
      if (isOneCall) isStopped = true;
    },
    // More calls, or a longer one, than any answer needs: a model that repeats itself.
    error() {
      endText();
      isStopped = isCut = true;
    },
  };

  function take(events: readonly OutputEvent[], isEnd: boolean): AnswerStep {
    if (events.length > 0 || isEnd) {
      const [first] = events;
      wasReasoning = first === undefined ? wasReasoning : first.type === 'reasoning';
      if (wasReasoning) numReasoningTokens += numPending;
      numPending = 0;
      wasReasoning = events.at(-1)?.type === 'reasoning' || (events.length === 0 && wasReasoning);
    }
    pieces = [];
    for (const event of events) {
      if (isStopped) break;
      (handlers[event.type] as (event: OutputEvent) => void)(event);
    }
    if (isEnd && !isStopped) say(stopMatcher.flush());
    const told: readonly AnswerPiece[] =
      pieces.length > 0 ? pieces : [{ reasoning: '', text: '', toolCalls: NO_CALLS }];
    return { pieces: told.map(joinDeltas), isStopped, isCut, stopString };
  }

  return {
    get numReasoningTokens() {
      return numReasoningTokens;
    },
    get numCalls() {
      return numCalls;
    },
    push(tokenId) {
      numPending++;
      return take(parser.push(decode.push(tokenId)), false);
    },
    finish: () => take([...parser.push(decode.flush()), ...parser.finish()], true),
  };
}

/** One delta a call: a call that is told whole is one piece. */
function joinDeltas(piece: AnswerPiece): AnswerPiece {
  const joined: ToolCallDelta[] = [];
  for (const delta of piece.toolCalls) {
    const last = joined.at(-1);
    if (last?.index !== delta.index) joined.push(delta);
    else joined[joined.length - 1] = { ...delta, isFirst: last.isFirst, arguments: last.arguments + delta.arguments };
  }
  return { ...piece, toolCalls: joined };
}
