/** A value of a file, and where its keys stand. */
export interface ParsedJson {
  readonly value: unknown;
  /** The line of each key from 1, by its path: `load.context`. */
  readonly lines: ReadonlyMap<string, number>;
}

/** What is wrong, and in which line. Never the text itself: it may hold a key. */
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

/** JSON as RFC 8259 has it, with the lines of its keys; a key that stands there twice is a problem, too. */
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
    const found = pattern.exec(text)?.[0] ?? null;
    if (found !== null) at += found.length;
    return found;
  };
  const take = (character: string): boolean => {
    match(SPACE);
    if (text[at] !== character) return false;
    at++;
    return true;
  };
  const readString = (what: string): string => {
    match(SPACE);
    return JSON.parse(match(STRING) ?? fail(`${what} is expected`)) as string;
  };

  function readObject(path: string): object {
    const object: Record<string, unknown> = {};
    if (take('}')) return object;
    do {
      match(SPACE);
      const start = at;
      const key = readString('a key in quotes');
      const keyPath = path === '' ? key : `${path}.${key}`;
      if (Object.hasOwn(object, key)) fail(`${JSON.stringify(key)} is there twice`, start);
      lines.set(keyPath, lineAt(start));
      if (!take(':')) fail('":" is expected');
      // Defined, not assigned: `__proto__` is a key like any other.
      const value = readValue(keyPath);
      Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
    } while (take(','));
    if (!take('}')) fail('"," or "}" is expected');
    return object;
  }

  function readList(path: string): unknown[] {
    const list: unknown[] = [];
    if (take(']')) return list;
    do list.push(readValue(path));
    while (take(','));
    if (!take(']')) fail('"," or "]" is expected');
    return list;
  }

  function readValue(path: string): unknown {
    if (++depth > MAX_DEPTH) fail(`more than ${MAX_DEPTH} levels`);
    try {
      if (take('{')) return readObject(path);
      if (take('[')) return readList(path);
      if (text[at] === '"') return readString('a text');
      const number = match(NUMBER);
      if (number !== null) return Number(number);
      const word = Object.keys(WORDS).find((one) => text.startsWith(one, at));
      if (word === undefined) return fail('a value is expected');
      at += word.length;
      return WORDS[word];
    } finally {
      depth--;
    }
  }

  try {
    const value = readValue('');
    match(SPACE);
    if (at < text.length) fail('nothing more is expected');
    return { value, lines };
  } catch (problem) {
    if (problem instanceof Error) throw problem;
    return problem as JsonProblem;
  }
}
