import { invalidFile } from './failures.ts';

/** A safetensors header nests object, tensor, list. Deeper input is hostile. */
const MAX_DEPTH = 3;

/**
 * Parses the JSON object of a safetensors header. Unlike `JSON.parse` it rejects deep nesting before parsing, and
 * duplicate keys, which two readers would resolve differently.
 */
export function parseFlatJson(json: string, sourceName: string): Record<string, unknown> {
  const numPairs = scan(json, sourceName);
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    invalidFile(`${sourceName}: the header is not valid JSON (${(error as Error).message.slice(0, 120)})`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    invalidFile(`${sourceName}: the header is not a JSON object`);
  }
  if (countPairs(parsed) !== numPairs) invalidFile(`${sourceName}: the header has a duplicate key`);
  return parsed as Record<string, unknown>;
}

/** Colons outside strings: in valid JSON, the number of key/value pairs. */
function scan(json: string, sourceName: string): number {
  let numPairs = 0;
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    switch (json[i]) {
      case '"':
        for (i++; i < json.length && json[i] !== '"'; i++) if (json[i] === '\\') i++;
        break;
      case ':':
        numPairs++;
        break;
      case '{':
      case '[':
        if (++depth > MAX_DEPTH) invalidFile(`${sourceName}: the header nests deeper than ${MAX_DEPTH}`);
        break;
      case '}':
      case ']':
        depth--;
        break;
      default:
    }
  }
  return numPairs;
}

function countPairs(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const children = Object.values(value);
  let count = Array.isArray(value) ? 0 : children.length;
  for (const child of children) count += countPairs(child);
  return count;
}
