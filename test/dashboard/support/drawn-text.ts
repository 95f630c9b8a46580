import type { Locator } from 'playwright-core';

/** The text of a complete answer. Its last words are drawn in frames of their own, after the answer has ended. */
export async function drawnText(answer: Locator): Promise<string> {
  const text = answer.locator('.markdown');
  await text.and(answer.page().locator(':not([aria-busy])')).waitFor();
  return text.innerText();
}
