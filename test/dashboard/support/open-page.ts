import type { BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core';
import { campaign } from '../../support/campaign.ts';
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
  /** Whether nothing was loaded or stored before; default: false, and scripts may be in the HTTP cache. */
  readonly isFresh?: boolean;
}

interface Watch {
  readonly origin: string;
  readonly expectedStatuses: readonly number[];
  readonly complaints: string[];
  readonly requests: string[];
}

/** A page that tests use in turn: a new context costs four processes, and the scripts are compiled again. */
interface KeptPage {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly devtools: CDPSession;
  watch: Watch | null;
  /** Whether nothing stays in it that a later test would meet. */
  isReusable: boolean;
}

/** Of the dashboard and of the example site. */
const ICON = 'icon.svg';

/** Nobody looks: a page that waits would be drawn sixty times a second for its spinner. */
const REDUCED_MOTION = campaign({ short: 'reduce', long: null } as const);

const idle = new Map<string, KeptPage[]>();

/** Opens a page with empty storage; disposing of it throws if there were complaints. */
export async function openPage(url: string, options: PageOptions = {}): Promise<WatchedPage> {
  const { key, hasTour = false, expectedStatuses, isFresh = false, colorScheme = null, viewport = { width: 1280, height: 800 }, ...rest } = options; // prettier-ignore
  const kind = JSON.stringify(rest);
  const kept =
    (isFresh ? undefined : idle.get(kind)?.pop()) ?? (await keepPage(await (await openBrowser()).newContext(rest)));
  const { page } = kept;
  await page.setViewportSize(viewport!);
  await page.emulateMedia({ colorScheme, reducedMotion: REDUCED_MOTION });
  const { origin } = new URL(url);
  const open = async (): Promise<void> => {
    const prepared = await prepare(kept.devtools, key ?? null, !hasTour);
    await page.goto(url);
    await prepared.remove();
  };
  const close = async (): Promise<void> => {
    if (isFresh || !(await reset(kept, origin))) return kept.context.close();
    idle.set(kind, [...(idle.get(kind) ?? []), kept]);
  };
  return watch(kept, url, { expectedStatuses, open, close });
}

/** Like `openPage`, in an existing context, which it closes. */
export async function watchPage(
  context: BrowserContext,
  url: string,
  expectedStatuses: readonly number[] = [],
): Promise<WatchedPage> {
  const kept = await keepPage(context);
  return watch(kept, url, { expectedStatuses, open: () => kept.page.goto(url), close: () => context.close() });
}

interface Visit {
  readonly expectedStatuses?: readonly number[] | undefined;
  open(): Promise<unknown>;
  close(): Promise<void>;
}

async function watch(kept: KeptPage, url: string, { expectedStatuses = [], open, close }: Visit): Promise<WatchedPage> {
  const complaints: string[] = [];
  const requests: string[] = [];
  kept.watch = { origin: new URL(url).origin, expectedStatuses, complaints, requests };
  await open();
  return {
    page: kept.page,
    complaints,
    requests,
    async [Symbol.asyncDispose]() {
      kept.watch = null;
      await close();
      if (complaints.length > 0) throw new Error(`the page complained:\n${complaints.join('\n')}`);
    },
  };
}

/** Storage as a page finds it that opens now, before its first script. */
async function prepare(
  devtools: CDPSession,
  key: string | null,
  isToured: boolean,
): Promise<{ remove(): Promise<void> }> {
  await devtools.send('Page.enable');
  const source = `(${fillStorage})(${JSON.stringify(key)}, ${isToured})`;
  const { identifier } = await devtools.send('Page.addScriptToEvaluateOnNewDocument', { source });
  return {
    async remove() {
      await devtools.send('Page.removeScriptToEvaluateOnNewDocument', { identifier });
      await devtools.send('Page.disable');
    },
  };
}

/** Runs in the page. */
function fillStorage(key: string | null, isToured: boolean): void {
  if (window !== top) return;
  sessionStorage.clear(); // it belongs to the tab, and DevTools cannot empty it
  if (key !== null) sessionStorage.setItem('ruvllm.key', key);
  if (isToured) localStorage.setItem('ruvllm.tour', 'done');
}

async function keepPage(context: BrowserContext): Promise<KeptPage> {
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const kept: KeptPage = {
    context,
    page,
    devtools: await context.newCDPSession(page),
    watch: null,
    isReusable: true,
  };
  // Playwright does not take scripts out of a page again.
  const addInitScript = page.addInitScript.bind(page) as Page['addInitScript'];
  page.addInitScript = (...args) => {
    kept.isReusable = false;
    return addInitScript(...args);
  };
  page.on('console', (message) => {
    if (kept.watch === null || (message.type() !== 'error' && message.type() !== 'warning')) return;
    const isExpected = kept.watch.expectedStatuses.some((status) =>
      message.text().startsWith(`Failed to load resource: the server responded with a status of ${status}`),
    );
    if (!isExpected)
      kept.watch.complaints.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => kept.watch?.complaints.push(`exception: ${error.stack ?? error.message}`));
  page.on('dialog', (dialog) => {
    kept.watch?.complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on('request', (request) => {
    if (kept.watch === null) return;
    kept.watch.requests.push(request.url());
    if (new URL(request.url()).origin !== kept.watch.origin)
      kept.watch.complaints.push(`request to another origin: ${request.url()}`);
  });
  return kept;
}

/** Ends what runs in a page and empties its storage; false: a later test would still notice the one before. */
async function reset(kept: KeptPage, origin: string): Promise<boolean> {
  const { context, page, devtools, isReusable } = kept;
  if (!isReusable || page.isClosed() || context.pages().length > 1) return false;
  try {
    if (await page.evaluate(() => '__pwClock' in globalThis)) return false; // a clock of Playwright cannot be taken out
    await context.unrouteAll();
    await page.unrouteAll();
    await context.setOffline(false);
    await openBlank(page, origin);
    await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' });
    return true;
  } catch {
    return false; // its server has gone, or it has crashed
  }
}

/** A page without a script, and with the policy of the origin, for any other of which a browser would start another process. */
async function openBlank(page: Page, origin: string): Promise<void> {
  const url = `${origin}/blank`;
  await page.route(url, async (route) => {
    const response = await route.fetch({ url: `${origin}/${ICON}` }).catch(() => null);
    if (response === null) return route.abort(); // its server has gone
    // Without an icon the browser would look for one that the server does not have.
    const body = `<!doctype html><title>Blank</title><link rel="icon" href="/${ICON}">`;
    await route.fulfill({ response, contentType: 'text/html', body });
  });
  await page.goto(url);
  await page.unroute(url);
}
