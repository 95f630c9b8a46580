import type { Budget } from './budget.ts';
import { Namespace, templateError } from './values.ts';
import type { RenderContext, Value } from './values.ts';

/** Python's `str(value)`, which `{{ value }}` prints. */
export function toText(budget: Budget, value: Value): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  return represent(budget, value);
}

function represent(budget: Budget, value: Value): string {
  budget.step();
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'string') return quote(budget, value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'function') return '<function>';
  budget.enter();
  const text = Array.isArray(value)
    ? `[${joinText(
        budget,
        value.map((item) => represent(budget, item)),
        ', ',
      )}]`
    : `{${joinText(
        budget,
        Array.from(
          value instanceof Namespace ? value.entries : value,
          ([key, item]) => `${represent(budget, key)}: ${represent(budget, item)}`,
        ),
        ', ',
      )}}`;
  budget.leave();
  return text;
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function quote(budget: Budget, text: string): string {
  budget.text(text.length * 2 + 2);
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char] as string);
  return mark + (mark === "'" ? escaped.replaceAll("'", String.raw`\'`) : escaped) + mark;
}

/** `parts.join(separator)`; rejects a result that is too long before building it. */
export function joinText(budget: Budget, parts: readonly string[], separator: string): string {
  let length = separator.length * Math.max(0, parts.length - 1);
  for (const part of parts) length += part.length;
  budget.text(length);
  return parts.join(separator);
}

export interface JsonStyle {
  /** Spaces per level; null: on one line. */
  indent: number | null;
  ensureAscii: boolean;
  sortKeys: boolean;
  /** Between items, between key and value; null: Python's defaults. */
  separators: readonly [string, string] | null;
}

/** Wider indentation only fills memory. */
const MAX_INDENT = 64;

/** Python's `json.dumps` with the defaults that chat templates expect (`ensure_ascii=False`). */
export function toJson(context: RenderContext, value: Value, style: JsonStyle): string {
  const { budget, guard } = context;
  const { indent, separators } = style;
  if (indent !== null && !(Number.isInteger(indent) && indent >= 0 && indent <= MAX_INDENT)) {
    throw templateError(`tojson indent must be 0 to ${MAX_INDENT}, got ${indent}`);
  }
  const itemSeparator = separators?.[0] ?? (indent === null ? ', ' : ',');
  const keySeparator = separators?.[1] ?? ': ';

  const writeText = (text: string): string => {
    budget.text(text.length * 2 + 2);
    const json = JSON.stringify(text);
    if (!style.ensureAscii) return json;
    budget.text(json.length * 6);
    return json.replace(/[\x7f-\uffff]/g, (char) =>
      char === guard ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  };
  const wrap = (parts: string[], open: string, close: string, level: number): string => {
    if (parts.length === 0) return open + close;
    if (indent === null) return open + joinText(budget, parts, itemSeparator) + close;
    const line = `\n${' '.repeat(indent * (level + 1))}`;
    return `${open}${line}${joinText(budget, parts, itemSeparator + line)}\n${' '.repeat(indent * level)}${close}`;
  };
  const write = (item: Value, level: number): string => {
    budget.step();
    if (item === null || item === undefined) return 'null';
    if (typeof item === 'string') return writeText(item);
    if (typeof item === 'boolean' || typeof item === 'number') return JSON.stringify(item);
    if (typeof item === 'function') throw templateError('a function cannot be written as JSON');
    budget.enter();
    let text: string;
    if (Array.isArray(item)) {
      text = wrap(
        item.map((child) => write(child, level + 1)),
        '[',
        ']',
        level,
      );
    } else {
      const entries = [...(item instanceof Namespace ? item.entries : item)];
      if (style.sortKeys) entries.sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
      const parts = entries.map(([key, child]) => writeText(String(key)) + keySeparator + write(child, level + 1));
      text = wrap(parts, '{', '}', level);
    }
    budget.leave();
    return text;
  };
  return write(value, 0);
}
