/**
 * Model output and file metadata are written by strangers. On a terminal a control character can move the cursor,
 * rewrite what was shown, change the title or paste into the input; directional overrides make text read as other text.
 * One character at a time, so that a sequence cut in two by streaming is as harmless as a whole one.
 */
const UNSAFE = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;
/** A name or a value has no use for what cannot be seen or turns its neighbours around; an answer in Hebrew has. */
const UNSAFE_IN_LINE =
  /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const NAMES: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

function spell(character: string): string {
  const code = character.codePointAt(0)!;
  return NAMES[character] ?? (code < 256 ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`);
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0');
}

/**
 * JSON that is safe to show and means the same: what would do something to a terminal, or cannot be seen, stands as an
 * escape. `JSON.stringify` does that for the first 32 characters only.
 */
export function toSafeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, null, indent);
  return text.replaceAll(UNSAFE_IN_LINE, (character) =>
    // Outside of texts there are line breaks, when it is indented, and nothing else.
    character === '\n'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`)
          .join(''),
  );
}

/** Text that is safe to show on a terminal: line breaks and tabs stay, carriage returns go, the rest is spelled out. */
export function escapeForTerminal(text: string): string {
  return text.replaceAll(UNSAFE, (character) => (character === '\r' ? '' : spell(character)));
}

/** As `escapeForTerminal`, for a value that must stay on its line. */
export function escapeLine(text: string): string {
  return text.replaceAll(UNSAFE_IN_LINE, spell);
}
