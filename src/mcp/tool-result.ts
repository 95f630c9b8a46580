import { showValue } from '../core/show-value.ts';
import { isRecord } from './json-rpc.ts';

/** The result of a tool as text for a model. */
export interface McpToolResult {
  readonly text: string;
  /** Whether the tool says that it failed. */
  readonly isError: boolean;
  /** UTF-8 bytes of the whole text. */
  readonly numBytes: number;
  /** Whether the text was cut off at the limit. */
  readonly isCut: boolean;
}

const describeData = (type: string, { mimeType, data }: Readonly<Record<string, unknown>>): string => {
  const kind = typeof mimeType === 'string' ? mimeType.slice(0, 100) : 'unknown type';
  return `[${type}, ${kind}, ${typeof data === 'string' ? data.length : 0} base64 characters; not shown]`;
};

const nameOf = (value: unknown, maxChars: number): string =>
  typeof value === 'string' ? value.slice(0, maxChars) : showValue(value);

function textOfPart(part: unknown): string {
  if (!isRecord(part)) return '';
  const { type, text, resource, uri, name } = part;
  if (type === 'text') return typeof text === 'string' ? text : '';
  if (type === 'image' || type === 'audio') return describeData(type, part);
  if (type === 'resource' && isRecord(resource)) {
    if (typeof resource['text'] === 'string') return resource['text'];
    return describeData('resource', { mimeType: resource['mimeType'], data: resource['blob'] });
  }
  if (type === 'resource_link') return `[link to ${nameOf(name, 200)}: ${nameOf(uri, 2000)}]`;
  return '';
}

/** `JSON.stringify` recurses; a result nested 100,000 deep would end the call with a stack overflow. */
function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '[structured content that is nested too deeply]';
  }
}

/** Reads the result of `tools/call`: its texts, or its structured content if there are none. */
export function readToolResult(result: Readonly<Record<string, unknown>>, maxBytes: number): McpToolResult {
  const { content, structuredContent, isError } = result;
  const parts = Array.isArray(content) ? content.map(textOfPart).filter((text) => text !== '') : [];
  const whole = parts.length > 0 ? parts.join('\n') : isRecord(structuredContent) ? jsonText(structuredContent) : '';
  return { ...cutText(whole.toWellFormed(), maxBytes), isError: isError === true };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Cuts a text at a number of UTF-8 bytes and says so in it. What is left holds nothing of the rest in memory. */
export function cutText(text: string, maxBytes: number): Omit<McpToolResult, 'isError'> {
  const bytes = encoder.encode(text);
  const numBytes = bytes.length;
  if (numBytes <= maxBytes) return { text: decoder.decode(bytes), numBytes, isCut: false };
  const { written } = encoder.encodeInto(text, new Uint8Array(maxBytes));
  const kept = decoder.decode(bytes.subarray(0, written));
  return { text: `${kept}\n[cut off: ${maxBytes} of ${numBytes} bytes]`, numBytes, isCut: true };
}
