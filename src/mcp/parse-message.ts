import { findJsonExcess, findTopValue, STRUCTURE_COST } from '../core/json-shape.ts';
import { idOf, type JsonRpcId } from './json-rpc.ts';
import { MCP_LIMITS } from './limits.ts';

/** Bytes of the other side, read. */
export type ParsedMessage =
  | { readonly kind: 'value'; readonly value: unknown; readonly numBytes: number }
  /** Not parsed. `what`: which limit it exceeds. */
  | { readonly kind: 'excess'; readonly id: JsonRpcId | null; readonly what: string; readonly limit: number }
  | { readonly kind: 'no JSON' };

const strictDecoder = new TextDecoder('utf-8', { fatal: true });

/** Reads one message, within the limits on its depth and values. */
export function parseMessage(bytes: Uint8Array): ParsedMessage {
  const { maxJsonDepth, maxJsonValues, maxIdChars } = MCP_LIMITS;
  const excess = findJsonExcess(bytes, MCP_LIMITS);
  if (excess !== null) {
    const id = idOf({ id: findTopValue(bytes, 'id', 6 * maxIdChars) });
    const values = `a message of more than ${maxJsonValues} values; a list, an object and a key count ${STRUCTURE_COST}`;
    return excess.of === 'depth'
      ? { kind: 'excess', id, what: `a message nested deeper than ${maxJsonDepth} levels`, limit: maxJsonDepth }
      : { kind: 'excess', id, what: values, limit: maxJsonValues };
  }
  try {
    return { kind: 'value', value: JSON.parse(strictDecoder.decode(bytes)) as unknown, numBytes: bytes.length };
  } catch {
    return { kind: 'no JSON' };
  }
}
