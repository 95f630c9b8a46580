/** Blocks whose characters take two columns: CJK, Hangul, kana, full-width forms (East Asian Width W and F). */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u3247\u3250-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Marks on top of others, joiners, and the vowels and finals that a Hangul syllable is made of. */
const NARROWEST = /^(?!\u00ad)[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]$/u;
const ASCII = /^[\x20-\x7e]*$/;
/** Asks for the picture of a character that is text by itself. */
const AS_EMOJI = '\ufe0f';
const ELLIPSIS = '…';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Whoever cuts at a width never looks further: a character may have thousands of marks. */
const MAX_UNITS_PER_COLUMN = 16;

function clusterWidth(cluster: string): number {
  if (cluster.includes(AS_EMOJI)) return 2;
  let width = 0;
  for (const character of cluster) {
    width += WIDE.test(character) ? 2 : NARROWEST.test(character) ? 0 : 1;
    // A family or a flag of several characters is one picture.
    if (width >= 2) return 2;
  }
  return width;
}

/** Columns that a line takes on a terminal; control characters must have been spelled out. */
export function displayWidth(line: string): number {
  if (ASCII.test(line)) return line.length;
  let width = 0;
  for (const { segment } of graphemes.segment(line)) width += clusterWidth(segment);
  return width;
}

/** The beginning of a line that fits, with `…` where something is missing. */
export function cutToWidth(line: string, columns: number): string {
  const room = Math.max(1, columns);
  if (ASCII.test(line)) return line.length <= room ? line : `${line.slice(0, room - 1)}${ELLIPSIS}`;
  const start = line.slice(0, room * MAX_UNITS_PER_COLUMN);
  const kept: string[] = [];
  let width = 0;
  // What fits together with the ellipsis; known only when it turns out to be needed.
  let safe = 0;
  for (const { segment } of graphemes.segment(start)) {
    const next = clusterWidth(segment);
    if (width + next > room) return `${kept.slice(0, safe).join('')}${ELLIPSIS}`;
    width += next;
    kept.push(segment);
    if (width <= room - 1) safe = kept.length;
  }
  return start.length === line.length ? line : `${kept.slice(0, safe).join('')}${ELLIPSIS}`;
}

/** Filled up with spaces. */
export function padToWidth(line: string, columns: number): string {
  return line + ' '.repeat(Math.max(0, columns - displayWidth(line)));
}

/** Broken into lines at spaces; a word that is longer than a line is broken where the line ends. */
export function wrapToWidth(line: string, columns: number): string[] {
  const room = Math.max(2, columns);
  const lines: string[] = [];
  let current = '';
  let width = 0;
  for (const word of line.split(' ')) {
    const own = displayWidth(word);
    if (width > 0 && width + 1 + own <= room) {
      current += ` ${word}`;
      width += 1 + own;
      continue;
    }
    if (width > 0) lines.push(current);
    [current, width] = [word, own];
    if (width > room) {
      const pieces = breakWord(word, room);
      lines.push(...pieces.slice(0, -1));
      current = pieces.at(-1)!;
      width = displayWidth(current);
    }
  }
  return [...lines, current];
}

function breakWord(word: string, room: number): string[] {
  const pieces: string[] = [];
  let current = '';
  let width = 0;
  for (const { segment } of graphemes.segment(word)) {
    const next = clusterWidth(segment);
    if (width + next > room) {
      pieces.push(current);
      [current, width] = ['', 0];
    }
    current += segment;
    width += next;
  }
  return [...pieces, current];
}
