import type { Page } from 'playwright-core';

/** Streams this text as every answer; all other requests reach the real server. */
export async function answerWith(
  page: Page,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const chunk = (delta: object, reason: string | null = null): string =>
    `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  const parts = text.match(/[\s\S]{1,997}/g) ?? [];
  await page.route('**/v1/chat/completions', (route) =>
    route.fulfill({
      headers: { 'content-type': 'text/event-stream', 'x-request-id': crypto.randomUUID(), ...headers },
      body: [...parts.map((content) => chunk({ content })), chunk({}, 'stop'), 'data: [DONE]\n\n'].join(''),
    }),
  );
}
