import type { Page } from 'playwright-core';

/** One event of a streamed answer that has these fields, in the server's format. */
export const chunkOf = (delta: object, reason: string | null = null, fields: object = {}): string =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta, finish_reason: reason }], ...fields })}\n\n`;

/** A complete streamed answer of these parts. */
export const streamOf = (deltas: readonly object[], reason = 'stop'): string =>
  [...deltas.map((delta) => chunkOf(delta)), chunkOf({}, reason), 'data: [DONE]\n\n'].join('');

/** Streams this text as every answer; all other requests reach the real server. */
export async function answerWith(
  page: Page,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const parts = text.match(/[\s\S]{1,997}/g) ?? [];
  await page.route('**/v1/chat/completions', (route) =>
    route.fulfill({
      headers: { 'content-type': 'text/event-stream', 'x-request-id': crypto.randomUUID(), ...headers },
      body: streamOf(parts.map((content) => ({ content }))),
    }),
  );
}
