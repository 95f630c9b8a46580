import type { StopMatcher } from '../../sampling/stop-matcher.ts';
import type { StreamDecoder } from '../../tokenizers/types.ts';
import type { ToolCallDelta } from '../generation-types.ts';

/** Something of an answer, in this order: thought, said, called. */
export interface AnswerPiece {
  readonly reasoning: string;
  readonly text: string;
  readonly toolCalls: readonly ToolCallDelta[];
}

/** Parts of the answer completed by a token or by its end. */
export interface AnswerStep {
  /** At least one; it may be empty. */
  readonly pieces: readonly AnswerPiece[];
  /** Nothing more is wanted, whatever the model would say. */
  readonly isStopped: boolean;
  /** It is so because more would be too much. */
  readonly isCut: boolean;
  readonly stopString: string | null;
}

/** Reads the tokens of one answer. */
export interface AnswerReader {
  push(tokenId: number): AnswerStep;
  finish(): AnswerStep;
  /** Tokens so far that were thought with. */
  readonly numReasoningTokens: number;
  readonly numCalls: number;
}

export const NO_CALLS: readonly ToolCallDelta[] = Object.freeze([]);

/** Takes everything as what is said. */
export function createPlainReader(decoder: StreamDecoder, stopMatcher: StopMatcher): AnswerReader {
  const step = (text: string, isStopped: boolean, stopString: string | null): AnswerStep => ({
    pieces: [{ reasoning: '', text, toolCalls: NO_CALLS }],
    isStopped,
    isCut: false,
    stopString,
  });
  return {
    numReasoningTokens: 0,
    numCalls: 0,
    push(tokenId) {
      const { emit, stopped, stopString = null } = stopMatcher.push(decoder.push(tokenId));
      return step(emit, stopped, stopString);
    },
    finish() {
      // The bytes of a broken character and the text held back may still complete a stop string.
      const last = stopMatcher.push(decoder.flush());
      const rest = last.stopped ? { emit: '', stopped: true, stopString: undefined } : stopMatcher.flush();
      const stopString = last.stopString ?? rest.stopString ?? null;
      return step(last.emit + rest.emit, stopString !== null, stopString);
    },
  };
}
