/**
 * Spellings that some parser reads as another path: empty and dot segments, backslashes, characters that must be escaped, and escapes of
 * characters that need none (`%63hat`), of backslashes and of control characters.
 */
const ODD =
  /[^\x21-\x7e]|[\\#]|%(?![0-9a-f]{2})|%(?:[01][0-9a-f]|7f|5c|2d|2e|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)|(?:\/|%2f)\.{0,2}(?:\/|%2f)|(?:\/|%2f)\.{1,2}$/i;

/** Status, code and message for a target without a path that all parsers read alike. */
export const ODD_PATH = [
  400,
  'malformed_path',
  'the path must have no empty or dot segments, backslashes, or escapes of characters that need none',
] as const;

/** The path of a request target; null: another parser could read it as another path. */
export function readPath(target: string): string | null {
  const end = target.indexOf('?');
  const path = end < 0 ? target : target.slice(0, end);
  return path.startsWith('/') && !ODD.test(path) ? path : null;
}
