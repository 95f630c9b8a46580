const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The beginning of a text of the other side, as valid Unicode and without the rest: a slice would keep all of it in memory. */
export const cutChars = (text: string, maxChars: number): string =>
  decoder.decode(encoder.encode(text.slice(0, maxChars)));
