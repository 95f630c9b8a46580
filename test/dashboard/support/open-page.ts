import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { openBrowser } from './browser.ts';

/** Longer than Playwright's default, because the browser and server share the machine with other tests. */
const WAIT_MS = 180_000;

/** A page that records errors and requests. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  /** Console errors and warnings, exceptions, dialogs, and requests to other origins. */
  readonly complaints: string[];
  readonly requests: string[];
}

export interface PageOptions extends BrowserContextOptions {
  /** Stored in the session before the page loads, which signs it in without the form. */
  readonly key?: string;
  /** Whether the tour of a first visit is shown; default: false. */
  readonly hasTour?: boolean;
  /** HTTP statuses that a test provokes; the browser logs each of them to the console. */
  readonly expectedStatuses?: readonly number[];
}

/** Opens a page in a new context; disposing of it throws if there were complaints. */
export async function openPage(url: string, options: PageOptions = {}): Promise<WatchedPage> {
  const { key, hasTour = false, expectedStatuses = [], ...contextOptions } = options;
  const browser = await openBrowser();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...contextOptions });
  if (!hasTour) await context.addInitScript(() => localStorage.setItem('ruvllm.tour', 'done'));
  if (key !== undefined) {
    await context.addInitScript((token) => {
      if (sessionStorage.getItem('test.signed') === null) sessionStorage.setItem('ruvllm.key', token);
      sessionStorage.setItem('test.signed', 'once'); // stays signed out when the page is reloaded
    }, key);
  }
  return watchPage(context, url, expectedStatuses);
}

/** Like `openPage`, in an existing context, which it closes. */
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
    if (!isExpected) complaints.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => complaints.push(`exception: ${error.stack ?? error.message}`));
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on('request', (request) => {
    requests.push(request.url());
    if (new URL(request.url()).origin !== origin) complaints.push(`request to another origin: ${request.url()}`);
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
