const BOLD = ['\x1b[1m', '\x1b[22m'] as const;
const CODE = ['\x1b[36m', '\x1b[39m'] as const;
const FENCE = ['\x1b[2m', '\x1b[22m'] as const;

/** Paints Markdown for a terminal while it arrives: headings and strong text bold, code coloured, fences dim. */
export interface MarkdownPainter {
  /** The part of the text so far that can be shown; a mark that may continue is held back. */
  push(text: string): string;
  /** The held-back rest, with all styles ended. */
  end(): string;
}

/** Text is escaped before it is painted: only the painter writes control sequences. */
export function createMarkdownPainter(): MarkdownPainter {
  let held = '';
  let isLineStart = true;
  let isHeading = false;
  let isStrong = false;
  let isCode = false;
  let isFence = false;

  function endLine(): string {
    const ends = (isHeading ? BOLD[1] : '') + (isStrong ? BOLD[1] : '') + (isCode ? CODE[1] : '');
    [isHeading, isStrong, isCode, isLineStart] = [false, false, false, true];
    return `${ends}\n`;
  }

  /** The next painted piece and its length; null: more text is needed. */
  function take(text: string, isLast: boolean): [painted: string, length: number] | null {
    if (text[0] === '\n') return [endLine(), 1];
    const mark = /^(?:#{1,6}|`+|\*+)/.exec(text)?.[0];
    if (mark === undefined || (isFence && mark[0] !== '`')) {
      const plain = /^[^\n#`*]+|^[\s\S]/.exec(text)![0];
      isLineStart = isLineStart && plain.trim() === '';
      return [plain, plain.length];
    }
    if (mark.length === text.length && !isLast) return null;
    const isFirst = isLineStart;
    isLineStart = false;
    if (isFirst && mark[0] === '`' && mark.length >= 3) {
      isFence = !isFence;
      return isFence ? [FENCE[0] + mark, mark.length] : [mark + FENCE[1], mark.length];
    }
    if (isFence) return [mark, mark.length];
    if (isFirst && mark[0] === '#' && text[mark.length] === ' ') {
      isHeading = true;
      return [BOLD[0] + mark, mark.length];
    }
    if (mark === '`') {
      isCode = !isCode;
      return [isCode ? CODE[0] : CODE[1], 1];
    }
    if (mark === '**' && !isCode && !isHeading) {
      isStrong = !isStrong;
      return [isStrong ? BOLD[0] : BOLD[1], 2];
    }
    return [mark, mark.length];
  }

  function paint(isLast: boolean): string {
    let painted = '';
    while (held !== '') {
      const next = take(held, isLast);
      if (next === null) break;
      painted += next[0];
      held = held.slice(next[1]);
    }
    return painted;
  }

  return {
    push(text) {
      held += text;
      return paint(false);
    },
    end() {
      const painted = paint(true);
      const ends = isFence ? FENCE[1] : '';
      isFence = false;
      const rest = endLine().slice(0, -1);
      return painted + rest + ends;
    },
  };
}
