/** Puts lines that end in a backslash together with the next one. */
export interface LineJoiner {
  /** The whole text once a line ends it; null while it goes on. */
  push(line: string): string | null;
  /** What is left when the input ends in the middle; null when nothing is. */
  flush(): string | null;
}

export function createLineJoiner(): LineJoiner {
  let parts: string[] = [];
  const take = (): string => {
    const text = parts.join('\n');
    parts = [];
    return text;
  };
  return {
    push(line) {
      const goesOn = line.endsWith('\\');
      parts.push(goesOn ? line.slice(0, -1) : line);
      return goesOn ? null : take();
    },
    flush: () => (parts.length === 0 ? null : take()),
  };
}
