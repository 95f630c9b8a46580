/** Whether a request speaks Anthropic's format: its clients say a version with every one, and its paths are its own. */
export function isAnthropicClient(request: Pick<Request, 'headers' | 'url'>): boolean {
  return request.headers.has('anthropic-version') || /^\/v1\/messages(?:\/|$)/.test(new URL(request.url).pathname);
}
