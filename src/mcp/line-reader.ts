import { RuvLLMError } from '../core/errors.ts';
import { MCP_LIMITS } from './limits.ts';
import { createLineSplitter } from './line-splitter.ts';
import { type ParsedMessage, parseMessage } from './parse-message.ts';

type LineLimits = Pick<typeof MCP_LIMITS, 'maxMessageBytes' | 'maxBytesPerSend' | 'maxInvalidLines'>;

/** Splits the output of a process into messages, one per line, within limits. */
export interface LineReader {
  /** The messages of the complete lines. Throws `limit_exceeded` for a line without an end, a flood, or many lines that are no JSON. */
  push(chunk: Uint8Array): Generator<Exclude<ParsedMessage, { kind: 'no JSON' }>, void, undefined>;
  /** Grants the bytes of another reply. */
  refill(): void;
}

export function createLineReader(limits: { readonly [K in keyof LineLimits]: number } = MCP_LIMITS): LineReader {
  const { maxMessageBytes, maxBytesPerSend, maxInvalidLines } = limits;
  const lines = createLineSplitter(maxMessageBytes);
  let budget: number = maxBytesPerSend;
  let numInvalid = 0;
  return {
    *push(chunk) {
      budget -= chunk.length;
      if (budget < 0) throw over(`printed more than ${maxBytesPerSend} bytes without being asked`, maxBytesPerSend);
      for (const line of lines.push(chunk)) {
        if (line === null) throw over(`sent a message of more than ${maxMessageBytes} bytes`, maxMessageBytes);
        const message = parseMessage(line);
        if (message.kind !== 'no JSON') yield message;
        else if (++numInvalid > maxInvalidLines)
          throw over(`printed ${numInvalid} lines that are no JSON`, maxInvalidLines);
      }
    },
    refill() {
      budget = maxBytesPerSend;
    },
  };
}

const over = (what: string, limit: number): RuvLLMError =>
  new RuvLLMError('limit_exceeded', `it ${what}; the limit is ${limit}`, { data: { limit } });
