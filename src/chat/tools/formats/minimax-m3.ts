import { createBodyFormat } from '../body-calls.ts';
import { isRawString, propertiesOf } from '../grammar.ts';
import { MAX_JSON_DEPTH } from '../limits.ts';
import { toJsonValue } from '../parameter-calls.ts';

const MARK = ']<]minimax[>[';

/** MiniMax M3: nested elements, each tag after a marker; lists are elements named item. */
export const minimaxM3 = createBodyFormat({
  name: 'minimax-m3',
  detect: (written, { name }) => written.includes(`${MARK}<invoke name="${name}">`),
  sections: [`${MARK}<tool_call>`],
  opener: `${MARK}<invoke name="`,
  nameStop: '">',
  closer: `${MARK}</invoke>`,
  sectionClosers: [`${MARK}</tool_call>`],
  translate(body, tool) {
    const schema = { type: 'object', properties: Object.fromEntries(propertiesOf(tool)) };
    if (body.trim() === '') return '{}';
    const json = readElement(body, schema, 0);
    return json?.startsWith('{') === true ? json : null;
  },
  spelling: {
    triggers: [`${MARK}<tool_call>`],
    begin: `${MARK}<tool_call>\n`,
    prefix: (name) => `${MARK}<invoke name="${name}">`,
    suffix: `${MARK}</invoke>\n`,
    separator: '',
    end: `${MARK}</tool_call>`,
    parameters: { begin: (key) => `${MARK}<${key}>`, separator: '', end: (key) => `${MARK}</${key}>`, stop: MARK },
  },
});

type Schema = { properties?: Record<string, unknown>; items?: unknown; type?: unknown } | undefined;

/** Converts the content of an element to JSON; null if its tags do not match. */
function readElement(text: string, schema: Schema, depth: number): string | null {
  if (depth > MAX_JSON_DEPTH) return null;
  if (!text.includes(MARK)) {
    if (text === '' && !isRawString(schema)) return 'null';
    return toJsonValue(text, schema, undefined);
  }
  const members: [string, string][] = [];
  for (let at = 0; text.slice(at).trim() !== '';) {
    const open = new RegExp(String.raw`^\s*\]<\]minimax\[>\[<([^<>/]{1,256})>`).exec(text.slice(at));
    if (open === null) return null;
    const [tag, key] = [open[0], open[1]!];
    const end = findClose(text, at + tag.length, key);
    if (end < 0) return null;
    const inner = key === 'item' ? (schema?.items ?? schema?.properties?.[key]) : schema?.properties?.[key];
    const json = readElement(text.slice(at + tag.length, end), inner as Schema, depth + 1);
    if (json === null) return null;
    members.push([key, json]);
    at = end + `${MARK}</${key}>`.length;
  }
  if (members.every(([key]) => key === 'item') && schema?.type !== 'object') {
    return `[${members.map(([, json]) => json).join(', ')}]`;
  }
  return `{${members.map(([key, json]) => `${JSON.stringify(key)}: ${json}`).join(', ')}}`;
}

/** Where the element `key` opened before `from` closes, skipping nested elements of the same name; -1: never. */
function findClose(text: string, from: number, key: string): number {
  const [open, close] = [`${MARK}<${key}>`, `${MARK}</${key}>`];
  let depth = 1;
  for (let at = from; ;) {
    const end = text.indexOf(close, at);
    if (end < 0) return -1;
    const begin = text.indexOf(open, at);
    if (begin >= 0 && begin < end) {
      depth++;
      at = begin + open.length;
      continue;
    }
    if (--depth === 0) return end;
    at = end + close.length;
  }
}
