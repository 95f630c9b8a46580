/** Longer descriptions are cut. */
const MAX_CHARS = 80;
/** Parts of a list or an object that are looked at. */
const MAX_PARTS = 8;

const cut = (text: string): string => (text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text);

/** A value as in JSON; what is inside a list or an object is only named. */
function showPart(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(value));
  if (Array.isArray(value)) return value.length === 0 ? '[]' : '[…]';
  if (typeof value === 'object' && value !== null) return '{…}';
  if (typeof value === 'function') return 'a function';
  return cut(String(value as string | number | bigint | boolean | symbol | null | undefined));
}

/** The value of a property, without calling a getter. */
const read = (value: object, key: string | number): unknown => Object.getOwnPropertyDescriptor(value, key)?.value;

/**
 * Describes a value of any type for a message: briefly, as in JSON, with the type of a list or an object. Other ways to turn a
 * foreign value into text call its `toString`, which JSON can replace with a number, or recurse as deep as it is nested: both throw.
 */
export function showValue(value: unknown): string {
  if (typeof value !== 'object' || value === null) return showPart(value);
  const isList = Array.isArray(value);
  const keys = isList
    ? Array.from({ length: Math.min(value.length, MAX_PARTS) }, (_, index) => index)
    : Object.keys(value);
  const numKeys = isList ? value.length : keys.length;
  const kind = isList ? `a list of ${numKeys} items` : 'an object';
  if (numKeys === 0) return kind;
  let text = '';
  for (const key of keys.slice(0, MAX_PARTS)) {
    text += `${text === '' ? '' : ','}${isList ? '' : `${showPart(key)}:`}${showPart(read(value, key))}`;
    if (text.length > MAX_CHARS) break;
  }
  const inside = text.length > MAX_CHARS || numKeys <= MAX_PARTS ? cut(text) : `${text},…`;
  return `${kind}, ${isList ? `[${inside}]` : `{${inside}}`}`;
}
