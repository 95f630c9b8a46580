/** Control characters, direction overrides and isolates, and separators without a glyph. */
// oxlint-disable-next-line no-control-regex -- control characters are what it must match
const INVISIBLE = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\u2028\u2029\uFEFF]/g;

/**
 * Makes untrusted text safe to display: characters that would alter the rendering (bidirectional overrides, ANSI escapes, control
 * characters) become visible symbols. Keeps tabs, line breaks and the marks that right-to-left scripts need.
 */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(INVISIBLE, showCharacter);
}

function showCharacter(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\u27E6U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27E7`;
}
