/** Characters of two columns: CJK, Hangul, kana, full-width forms (East Asian Width W and F). */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u3247\u3250-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters of no columns: combining marks, joiners, and vowels and finals of Hangul syllables. */
const ZERO_WIDTH = /^(?!\u00ad)[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]$/u;
const ASCII = /^[\x20-\x7e]*$/;
const EMOJI_VARIATION_SELECTOR = '\ufe0f';
const ELLIPSIS = '…';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Bounds the work of cutting: a character may have thousands of combining marks. */
const MAX_UNITS_PER_COLUMN = 16;

function clusterWidth(cluster: string): number {
  if (cluster.includes(EMOJI_VARIATION_SELECTOR)) return 2;
  let width = 0;
  for (const character of cluster) {
    width += WIDE.test(character) ? 2 : ZERO_WIDTH.test(character) ? 0 : 1;
    // A family or a flag of several characters is one glyph.
    if (width >= 2) return 2;
  }
  return width;
}

/** Width of a line in columns; control characters must be escaped. */
export function displayWidth(line: string): number {
  if (ASCII.test(line)) return line.length;
  let width = 0;
  for (const { segment } of graphemes.segment(line)) width += clusterWidth(segment);
  return width;
}

/** Cuts a line to at most `columns` columns, with `…` in place of the cut part. */
export function cutToWidth(line: string, columns: number): string {
  const maxWidth = Math.max(1, columns);
  if (ASCII.test(line)) return line.length <= maxWidth ? line : `${line.slice(0, maxWidth - 1)}${ELLIPSIS}`;
  const start = line.slice(0, maxWidth * MAX_UNITS_PER_COLUMN);
  const clusters: string[] = [];
  let width = 0;
  // Number of clusters that fit together with the ellipsis.
  let numBeforeEllipsis = 0;
  const cut = (): string => `${clusters.slice(0, numBeforeEllipsis).join('')}${ELLIPSIS}`;
  for (const { segment } of graphemes.segment(start)) {
    const segmentWidth = clusterWidth(segment);
    if (width + segmentWidth > maxWidth) return cut();
    width += segmentWidth;
    clusters.push(segment);
    if (width <= maxWidth - 1) numBeforeEllipsis = clusters.length;
  }
  return start.length === line.length ? line : cut();
}

export function padToWidth(line: string, columns: number): string {
  return line + ' '.repeat(Math.max(0, columns - displayWidth(line)));
}

/** Wraps a line at spaces, and inside words longer than a line. */
export function wrapToWidth(line: string, columns: number): string[] {
  const maxWidth = Math.max(2, columns);
  const lines: string[] = [];
  let current = '';
  let width = 0;
  for (const word of line.split(' ')) {
    const wordWidth = displayWidth(word);
    if (width > 0 && width + 1 + wordWidth <= maxWidth) {
      current += ` ${word}`;
      width += 1 + wordWidth;
      continue;
    }
    if (width > 0) lines.push(current);
    [current, width] = [word, wordWidth];
    if (width > maxWidth) {
      const pieces = breakWord(word, maxWidth);
      lines.push(...pieces.slice(0, -1));
      current = pieces.at(-1)!;
      width = displayWidth(current);
    }
  }
  return [...lines, current];
}

function breakWord(word: string, maxWidth: number): string[] {
  const pieces: string[] = [];
  let current = '';
  let width = 0;
  for (const { segment } of graphemes.segment(word)) {
    const segmentWidth = clusterWidth(segment);
    if (width + segmentWidth > maxWidth) {
      pieces.push(current);
      [current, width] = ['', 0];
    }
    current += segment;
    width += segmentWidth;
  }
  return [...pieces, current];
}
