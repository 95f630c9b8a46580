import { createBodyFormat } from '../body-calls.ts';
import { parseJson } from '../json-reader.ts';
import { MAX_JSON_DEPTH } from '../limits.ts';

const QUOTE = '<|"|>';
const WORDS: Readonly<Record<string, string>> = { None: 'null', True: 'true', False: 'false' };

/** Gemma 4: unquoted keys, strings between special quotes. */
export const gemma4 = createBodyFormat({
  name: 'gemma-4',
  detect: (written, { name }) => written.includes(`<|tool_call>call:${name}{`),
  sections: [],
  opener: '<|tool_call>call:',
  nameStop: '{',
  closer: '}<tool_call|>',
  sectionClosers: ['<|tool_response>'],
  quotes: [QUOTE],
  translate: (body) => translate(`{${body}}`),
  spelling: {
    triggers: ['<|tool_call>'],
    begin: '',
    prefix: (name) => `<|tool_call>call:${name}{`,
    suffix: '}<tool_call|>',
    separator: '',
    end: '',
    parameters: {
      begin: (key, isRaw) => `${key}:${isRaw ? QUOTE : ''}`,
      separator: ',',
      end: (_, isRaw) => (isRaw ? QUOTE : ''),
      stop: '}<tool_call|>',
      names: /^[^\s[\]{},:"<\p{Surrogate}]{1,200}$/u,
    },
  },
});

const TOKEN = /\s+|<\|"\|>([^]*?)<\|"\|>|"(?:[^"\\]|\\[^])*"|[[\]{},:]|[^\s[\]{},:"<]+/y;

/** Converts the family's notation to JSON; null if invalid. */
function translate(text: string): string | null {
  let json = '';
  const open: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (match === null) return null;
    const [token, quoted] = match;
    if (token === '{' || token === '[') open.push(token);
    else if (token === '}' || token === ']') open.pop();
    if (open.length > MAX_JSON_DEPTH) return null;
    const isKey = open.at(-1) === '{' && /^\s*:/.test(text.slice(TOKEN.lastIndex, TOKEN.lastIndex + 64));
    if (quoted !== undefined) json += JSON.stringify(quoted);
    else if (isKey && /^[^\s[\]{},:"]/.test(token)) json += JSON.stringify(token);
    else json += WORDS[token] ?? token;
  }
  return parseJson(json) === undefined ? null : json;
}
