/** Text that a terminal would take for commands. */
export const HOSTILE =
  'a\x1b[2J\x1b]52;c;aGk=\x07\x1b]8;;http://evil\x1b\\b\u009b31m\u0090q\u009c\u202egpj\u2066x\u200f\r\n\x00\x08\x7fc';

// As output.ts, report-error.ts, progress.ts and repl.ts write them themselves.
// eslint-disable-next-line no-control-regex
const OWN = /\x1b\[(?:1|2|22|31|36|39)m|\r?\x1b\[K|\x1b\[\?2004[hl]/g;

/** The dangerous characters in a text, except our own colours. */
export function findHostile(output: string): string[] {
  return [...output.replaceAll(OWN, '')].filter((character) => {
    const code = character.codePointAt(0)!;
    if (character === '\n' || character === '\t') return false;
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069); // prettier-ignore
  });
}
