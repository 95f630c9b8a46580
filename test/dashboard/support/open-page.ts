import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { openBrowser } from './browser.ts';

/** Twice what Playwright gives: the browser, the server and the test share the machine with other tests. */
const WAIT_MS = 180_000;

/** A page that remembers what must not happen. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  /** Console errors and warnings, exceptions, and requests that left the origin. */
  readonly complaints: string[];
  /** Every address that was asked for. */
  readonly requests: string[];
}

export interface PageOptions extends BrowserContextOptions {
  /** Put into the session before the page starts: signed in without the form. */
  readonly key?: string;
  /** Statuses a test makes happen on purpose: the browser writes each into the console. */
  readonly expectedStatuses?: readonly number[];
}

/** Opens a page in a context of its own; disposing of it throws when there were complaints. */
export async function openPage(url: string, options: PageOptions = {}): Promise<WatchedPage> {
  const { key, expectedStatuses = [], ...more } = options;
  const browser = await openBrowser();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...more });
  if (key !== undefined) {
    await context.addInitScript((token) => {
      if (sessionStorage.getItem('test.signed') === null) sessionStorage.setItem('ruvllm.key', token);
      sessionStorage.setItem('test.signed', 'once'); // a key that was given up stays given up when the page is loaded again
    }, key);
  }
  return watchPage(context, url, expectedStatuses);
}

/** The same in a context that was made elsewhere, which it closes. */
export async function watchPage(
  context: BrowserContext,
  url: string,
  expectedStatuses: readonly number[] = [],
): Promise<WatchedPage> {
  const { origin } = new URL(url);
  const complaints: string[] = [];
  const requests: string[] = [];
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    const isExpected = expectedStatuses.some((status) =>
      message.text().startsWith(`Failed to load resource: the server responded with a status of ${status}`),
    );
    if (!isExpected) complaints.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`exception: ${error.stack ?? error.message}`));
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on('request', (request) => {
    requests.push(request.url());
    if (new URL(request.url()).origin !== origin) complaints.push(`left the origin: ${request.url()}`);
  });
  await page.goto(url);
  return {
    page,
    complaints,
    requests,
    async [Symbol.asyncDispose]() {
      await context.close();
      if (complaints.length > 0) throw new Error(`the page complained:\n${complaints.join('\n')}`);
    },
  };
}
