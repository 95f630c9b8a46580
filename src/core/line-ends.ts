const LINE_END = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;

/** Further lines of a text are indented, so that none can pass for a line of those around it. */
export const indentLines = (text: string): string => text.replace(LINE_END, '\n  ');

/** The text as one line. */
export const joinLines = (text: string): string => text.replace(LINE_END, ' ');

export const hasLines = (text: string): boolean => text.search(LINE_END) >= 0;
