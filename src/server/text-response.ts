const TEXT = Symbol('text');

/** A response whose text a socket can write at once, without reading the stream. */
export function textResponse(
  text: string,
  init: { status: number; headers: Readonly<Record<string, string>> },
): Response {
  return Object.assign(new Response(text, init), { [TEXT]: text });
}

/** The text of a `textResponse`; null for other responses. */
export function textOf(response: Response): string | null {
  return (response as { [TEXT]?: string })[TEXT] ?? null;
}
