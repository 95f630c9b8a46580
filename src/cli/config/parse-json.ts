export interface ParsedJson {
  readonly value: unknown;
  /** 1-based line of each key, by path: `load.context`. */
  readonly lines: ReadonlyMap<string, number>;
}

/** A syntax error. Never quotes the text, which may contain a secret. */
export interface JsonProblem {
  readonly line: number;
  readonly reason: string;
}

const MAX_DEPTH = 32;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// eslint-disable-next-line no-control-regex
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

/** Parses JSON (RFC 8259) with the lines of its keys; rejects duplicate keys. */
export function parseJson(text: string): ParsedJson | JsonProblem {
  const lines = new Map<string, number>();
  let at = 0;
  let depth = 0;
  const lineAt = (index: number): number => text.slice(0, index).split('\n').length;
  const fail = (reason: string, index = at): never => {
    throw { line: lineAt(index), reason } satisfies JsonProblem;
  };
  const match = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const matched = pattern.exec(text)?.[0] ?? null;
    if (matched !== null) at += matched.length;
    return matched;
  };
  const take = (character: string): boolean => {
    match(SPACE);
    if (text[at] !== character) return false;
    at++;
    return true;
  };
  const readString = (what: string): string => {
    match(SPACE);
    return JSON.parse(match(STRING) ?? fail(`expected ${what}`)) as string;
  };

  function readObject(path: string): object {
    const object: Record<string, unknown> = {};
    if (take('}')) return object;
    do {
      match(SPACE);
      const start = at;
      const key = readString('a quoted key');
      const keyPath = path === '' ? key : `${path}.${key}`;
      if (Object.hasOwn(object, key)) fail(`duplicate key ${JSON.stringify(key)}`, start);
      lines.set(keyPath, lineAt(start));
      if (!take(':')) fail('expected ":"');
      // Assignment to `__proto__` would change the prototype.
      const value = readValue(keyPath);
      Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
    } while (take(','));
    if (!take('}')) fail('expected "," or "}"');
    return object;
  }

  function readList(path: string): unknown[] {
    const list: unknown[] = [];
    if (take(']')) return list;
    do list.push(readValue(path));
    while (take(','));
    if (!take(']')) fail('expected "," or "]"');
    return list;
  }

  function readValue(path: string): unknown {
    if (++depth > MAX_DEPTH) fail(`more than ${MAX_DEPTH} levels`);
    try {
      if (take('{')) return readObject(path);
      if (take('[')) return readList(path);
      if (text[at] === '"') return readString('a string');
      const number = match(NUMBER);
      if (number !== null) return Number(number);
      const word = Object.keys(WORDS).find((candidate) => text.startsWith(candidate, at));
      if (word === undefined) return fail('expected a value');
      at += word.length;
      return WORDS[word];
    } finally {
      depth--;
    }
  }

  try {
    const value = readValue('');
    match(SPACE);
    if (at < text.length) fail('unexpected text after the value');
    return { value, lines };
  } catch (problem) {
    if (problem instanceof Error) throw problem;
    return problem as JsonProblem;
  }
}
