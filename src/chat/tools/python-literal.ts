import { parseJson } from './json-reader.ts';

const TOKEN = /\s+|'(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*"|[[\]{},:()]|-?\d[\w.+-]*|[A-Za-z]+/y;
const WORDS: Readonly<Record<string, string>> = {
  None: 'null',
  True: 'true',
  False: 'false',
  null: 'null',
  true: 'true',
  false: 'false',
  '(': '[',
  ')': ']',
};

/** Converts a Python literal, as printed by `str()`, to JSON; null if invalid. */
export function pythonToJson(text: string): string | null {
  let json = '';
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return null;
    if (token[0] === "'" || token[0] === '"') json += quote(token.slice(1, -1));
    else if (/^[A-Za-z]/.test(token) && WORDS[token] === undefined) return null;
    else json += WORDS[token] ?? token.replace(/^\s+$/, ' ');
  }
  return parseJson(json) === undefined ? null : json.trim();
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', 0: '\0' };

function quote(inner: string): string {
  const plain = inner.replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^])/g, (_, escaped: string) =>
    escaped.length > 1 ? String.fromCharCode(Number.parseInt(escaped.slice(1), 16)) : (ESCAPES[escaped] ?? escaped),
  );
  return JSON.stringify(plain);
}
