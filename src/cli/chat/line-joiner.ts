/** Joins lines into one text: pasted lines, lines between `"""`, and lines that end in a backslash. */
export interface LineJoiner {
  /** Returns the text that this line completes, else null. Pasted lines are completed by a typed one. */
  push(line: string, isPasted?: boolean): string | null;
  /** Whether a text is unfinished. */
  readonly isOpen: boolean;
  /** Discards an unfinished text. */
  drop(): void;
  /** Returns the unfinished text at the end of the input, else null. */
  flush(): string | null;
}

const QUOTES = '"""';

export function createLineJoiner(): LineJoiner {
  let parts: string[] = [];
  let isQuoted = false;
  let wasPasted = false;
  const drop = (): void => {
    parts = [];
    isQuoted = false;
    wasPasted = false;
  };
  const take = (): string => {
    const text = parts.join('\n');
    drop();
    return text;
  };
  const endOf = (line: string): string | null => {
    const text = line.trimEnd();
    return text.endsWith(QUOTES) ? text.slice(0, -QUOTES.length) : null;
  };

  function pushQuoted(line: string): string | null {
    const end = endOf(line);
    // Quotes on their own lines and the adjacent line breaks are not part of the text.
    if (end !== '') parts.push(end ?? line);
    return end === null ? null : take();
  }

  return {
    push(line, isPasted = false) {
      if (isPasted) {
        wasPasted = true;
        parts.push(line);
        return null;
      }
      if (isQuoted) return pushQuoted(line);
      if (parts.length === 0 && line.startsWith(QUOTES)) {
        isQuoted = true;
        const quotedLine = line.slice(QUOTES.length);
        return quotedLine === '' ? null : pushQuoted(quotedLine);
      }
      // The empty line that sends a paste is not part of it.
      if (wasPasted && line === '') return take();
      const isContinued = line.endsWith('\\');
      parts.push(isContinued ? line.slice(0, -1) : line);
      return isContinued ? null : take();
    },
    get isOpen() {
      return isQuoted || parts.length > 0;
    },
    drop,
    flush: () => (parts.length === 0 ? null : take()),
  };
}
