/** Where a response keeps its text, beside the stream that a response makes of it. */
const TEXT = Symbol('text');

/** A response of a text that is known whole; a socket can write it at once, without reading the stream again. */
export function textResponse(
  text: string,
  init: { status: number; headers: Readonly<Record<string, string>> },
): Response {
  return Object.assign(new Response(text, init), { [TEXT]: text });
}

/** The text of a response that was made by `textResponse`; null for all others. */
export function textOf(response: Response): string | null {
  return (response as { [TEXT]?: string })[TEXT] ?? null;
}
