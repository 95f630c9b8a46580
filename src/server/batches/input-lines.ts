import type { Clock } from '../../core/clock.ts';
import { isObject } from '../wire/fields.ts';
import type { LineError } from './types.ts';

/** Paths that lines of a batch file may call. */
export const BATCH_ENDPOINTS = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses'] as const;

/** A line that can be sent to the batch's endpoint. */
export interface InputLine {
  readonly customId: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The user that the request names; null: none. */
  readonly userId: string | null;
}

export const MAX_CUSTOM_ID_CHARS = 512;
/** More errors than this are not listed: a wrong file has one per line. */
const MAX_ERRORS = 100;
/** Characters that are parsed before streams get their turn: a megabyte of JSON takes 10 ms. */
const TURN_CHARS = 1 << 18;

type Problem = Omit<LineError, 'line'>;

/** Lines by their position; the last one need not end with a line break. */
export const divideLines = (text: string): readonly string[] => text.replace(/^\uFEFF/, '').split('\n');

export const isEmptyLine = (line: string): boolean => line.trim() === '';

/** Reads one line, or says why it is no request. */
export function readLine(text: string, endpoint: string): InputLine | Problem {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return problem('invalid_json_line', 'This line is not parseable as valid JSON.', null);
  }
  if (!isObject(value)) return problem('invalid_json_line', 'This line is not a JSON object.', null);
  const { custom_id: customId, method, url, body } = value;
  for (const name of ['custom_id', 'method', 'url', 'body']) {
    if (value[name] == null)
      return problem('missing_required_parameter', `Missing required parameter: '${name}'.`, name);
  }
  if (typeof customId !== 'string' || customId === '' || customId.length > MAX_CUSTOM_ID_CHARS) {
    return problem('invalid_value', `'custom_id' must be a text of 1 to ${MAX_CUSTOM_ID_CHARS} characters.`, 'custom_id'); // prettier-ignore
  }
  if (method !== 'POST') return problem('invalid_method', `'method' must be POST.`, 'method');
  if (url !== endpoint) return problem('invalid_url', `'url' must be the batch's endpoint, ${endpoint}.`, 'url');
  if (!isObject(body)) return problem('invalid_value', `'body' must be an object.`, 'body');
  if (body['stream'] === true) {
    return problem('unsupported_parameter', 'A line of a batch has one result: stream must be false.', 'body.stream');
  }
  return { customId, body, userId: userOf(body) };
}

export const isInputLine = (line: InputLine | Problem): line is InputLine => 'customId' in line;

/** The user of a request in OpenAI's format or Anthropic's. */
function userOf({ user, metadata }: Readonly<Record<string, unknown>>): string | null {
  if (typeof user === 'string') return user;
  const named = isObject(metadata) ? metadata['user_id'] : null;
  return typeof named === 'string' ? named : null;
}

/** The user of a line of any file; null: none, or no request. */
export function userOfLine(text: string): string | null {
  try {
    const { body } = JSON.parse(text) as { readonly body?: unknown };
    return isObject(body) ? userOf(body) : null;
  } catch {
    return null;
  }
}

function problem(code: string, message: string, param: string | null): Problem {
  return { code, message, param };
}

export interface CheckedLines {
  readonly numRequests: number;
  readonly errors: readonly LineError[];
}

/** Checks all lines of a file, with pauses in which other requests are served. */
export async function checkLines(
  lines: readonly string[],
  { endpoint, maxLines, clock }: { endpoint: string; maxLines: number; clock: Pick<Clock, 'setTimer'> },
): Promise<CheckedLines> {
  const seen = new Map<string, number>();
  const errors: LineError[] = [];
  let numRequests = 0;
  let numChars = 0;
  for (const [index, text] of lines.entries()) {
    if (isEmptyLine(text)) continue;
    if (++numRequests > maxLines) {
      const message = `The file has more than ${maxLines} requests, which is the limit of a batch.`;
      return { numRequests, errors: [{ code: 'too_many_lines', message, param: null, line: index + 1 }] };
    }
    const line = readLine(text, endpoint);
    const first = isInputLine(line) ? seen.get(line.customId) : undefined;
    if (!isInputLine(line)) errors.push({ ...line, line: index + 1 });
    else if (first === undefined) seen.set(line.customId, index + 1);
    else {
      const message = `The custom_id of this request is that of line ${first}; it must be unique in a batch.`;
      errors.push({ code: 'duplicate_custom_id', message, param: 'custom_id', line: index + 1 });
    }
    if (errors.length === MAX_ERRORS) break;
    numChars += text.length;
    if (numChars < TURN_CHARS) continue;
    numChars = 0;
    await new Promise<void>((resolve) => clock.setTimer(0, resolve));
  }
  if (numRequests === 0) {
    errors.push({ code: 'empty_file', message: 'The file has no requests.', param: null, line: null });
  }
  return { numRequests, errors };
}
