import { RuvLLMError } from '../core/errors.ts';
import { MCP_LIMITS } from './limits.ts';

type LineLimits = Pick<typeof MCP_LIMITS, 'maxMessageBytes' | 'maxBytesPerSend' | 'maxInvalidLines'>;

/** Splits the output of a process into JSON values, one per line, within limits. */
export interface LineReader {
  /** The values of the complete lines. Throws `limit_exceeded` for a line without an end, a flood, or many lines that are no JSON. */
  push(chunk: Uint8Array): readonly unknown[];
  /** Grants the bytes of another reply. */
  refill(): void;
}

export function createLineReader(limits: { readonly [K in keyof LineLimits]: number } = MCP_LIMITS): LineReader {
  const { maxMessageBytes, maxBytesPerSend, maxInvalidLines } = limits;
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let lineBytes = 0;
  let budget: number = maxBytesPerSend;
  let numInvalid = 0;

  function parse(): unknown {
    const bytes = new Uint8Array(lineBytes);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    const text = decoder.decode(bytes).trim();
    if (text === '') return undefined;
    try {
      return JSON.parse(text) as unknown;
    } catch {
      if (++numInvalid > maxInvalidLines) throw over(`printed ${numInvalid} lines that are no JSON`, maxInvalidLines);
      return undefined;
    }
  }

  function add(part: Uint8Array): void {
    lineBytes += part.length;
    if (lineBytes > maxMessageBytes)
      throw over(`sent a message of more than ${maxMessageBytes} bytes`, maxMessageBytes);
    if (part.length > 0) parts.push(part);
  }

  return {
    push(chunk) {
      budget -= chunk.length;
      if (budget < 0) throw over(`printed more than ${maxBytesPerSend} bytes without being asked`, maxBytesPerSend);
      const values: unknown[] = [];
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        add(chunk.subarray(start, end));
        const value = parse();
        if (value !== undefined) values.push(value);
        [parts, lineBytes, start] = [[], 0, end + 1];
      }
      add(chunk.slice(start)); // a copy: the rest of a chunk would keep all of it in memory
      return values;
    },
    refill() {
      budget = maxBytesPerSend;
    },
  };
}

const over = (what: string, limit: number): RuvLLMError =>
  new RuvLLMError('limit_exceeded', `it ${what}; the limit is ${limit}`, { data: { limit } });
