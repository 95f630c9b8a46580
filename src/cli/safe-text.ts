/**
 * Model output and file metadata are untrusted. On a terminal, control characters can move the cursor, overwrite text,
 * change the title or paste into the input; directional overrides change how text reads. Characters are escaped one by
 * one, so that a sequence split by streaming is escaped, too.
 */
const UNSAFE = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;
/** Also invisible and directional characters, which an answer in Hebrew needs but a name does not. */
const UNSAFE_IN_LINE =
  /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const NAMES: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0)!;
  return NAMES[character] ?? (code < 256 ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`);
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0');
}

/** JSON with all unsafe and invisible characters escaped; `JSON.stringify` escapes only the first 32. */
export function toSafeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, null, indent);
  return text.replaceAll(UNSAFE_IN_LINE, (character) =>
    // Strings contain no raw line breaks: this one is indentation.
    character === '\n'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`)
          .join(''),
  );
}

/** Escapes text for a terminal: keeps line breaks and tabs, drops carriage returns. */
export function escapeForTerminal(text: string): string {
  return text.replaceAll(UNSAFE, (character) => (character === '\r' ? '' : escapeCharacter(character)));
}

/** Escapes a value that must stay on one line. */
export function escapeLine(text: string): string {
  return text.replaceAll(UNSAFE_IN_LINE, escapeCharacter);
}
