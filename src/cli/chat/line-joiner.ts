/** Makes one text of several lines: pasted ones, those between `"""`, and those that end in a backslash. */
export interface LineJoiner {
  /** The whole text once a line ends it; null while it goes on. What was pasted waits for a line that was typed. */
  push(line: string, isPasted?: boolean): string | null;
  /** Whether a text has begun and not ended. */
  readonly isOpen: boolean;
  /** Forgets what was begun. */
  drop(): void;
  /** What is left when the input ends in the middle; null when nothing is. */
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
    // Quotes on lines of their own are not part of the text, and neither are the breaks beside them.
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
        const rest = line.slice(QUOTES.length);
        return rest === '' ? null : pushQuoted(rest);
      }
      // A paste that ended with a break is sent by an empty line, which is not part of it.
      if (wasPasted && line === '') return take();
      const goesOn = line.endsWith('\\');
      parts.push(goesOn ? line.slice(0, -1) : line);
      return goesOn ? null : take();
    },
    get isOpen() {
      return isQuoted || parts.length > 0;
    },
    drop,
    flush: () => (parts.length === 0 ? null : take()),
  };
}
