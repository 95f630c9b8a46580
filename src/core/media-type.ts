/** A media type as a header `content-type` names it. */
export interface MediaType {
  /** In lower case and without parameters, such as `text/html`. */
  readonly type: string;
  /** Values by their names in lower case, such as `charset`. */
  readonly parameters: ReadonlyMap<string, string>;
}

const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const NONE: ReadonlyMap<string, string> = new Map();
const JSON_TYPE: MediaType = { type: 'application/json', parameters: NONE };

/** Reads a media type in any spelling: upper case, spaces, quoted parameters. Null: none, or not a media type. */
export function parseMediaType(text: string | null | undefined): MediaType | null {
  if (text === null || text === undefined) return null;
  if (text === JSON_TYPE.type) return JSON_TYPE;
  const end = text.indexOf(';');
  const type = (end < 0 ? text : text.slice(0, end)).trim().toLowerCase();
  const slash = type.indexOf('/');
  if (slash < 0 || !TOKEN.test(type.slice(0, slash)) || !TOKEN.test(type.slice(slash + 1))) return null;
  return { type, parameters: end < 0 ? NONE : readParameters(text, end) };
}

/** The first value of a name counts, as in browsers; a parameter that is not well-formed is left out. */
function readParameters(text: string, start: number): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  let at = start;
  while (at < text.length) {
    const equals = text.indexOf('=', at);
    const next = text.indexOf(';', at + 1);
    if (equals < 0) break;
    if (next >= 0 && next < equals) {
      at = next; // a name without a value
      continue;
    }
    const name = text
      .slice(at + 1, equals)
      .trim()
      .toLowerCase();
    const [value, end] = text[equals + 1] === '"' ? readQuoted(text, equals + 2) : readPlain(text, equals + 1);
    if (TOKEN.test(name) && value !== '' && !parameters.has(name)) parameters.set(name, value);
    at = end;
  }
  return parameters;
}

/** A value, and the index of the next semicolon. */
function readPlain(text: string, start: number): [value: string, end: number] {
  const semicolon = text.indexOf(';', start);
  const end = semicolon < 0 ? text.length : semicolon;
  return [text.slice(start, end).trim(), end];
}

function readQuoted(text: string, start: number): [value: string, end: number] {
  let value = '';
  let at = start;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === '\\' && at + 1 < text.length) at++;
    value += text[at];
    at++;
  }
  const semicolon = text.indexOf(';', at);
  return [value, semicolon < 0 ? text.length : semicolon];
}
