import type { Page } from 'playwright-core';
import type * as library from '../../../src/browser/index.ts';
import { openPage, type WatchedPage } from '../../dashboard/support/open-page.ts';
import type { Site } from './site.ts';

declare global {
  /** The built library, in pages of `openLibraryPage`. */
  var ruvllm: typeof library;
  /** Violations of the content security policy. */
  var violations: string[];
  /** Kept by a test between two calls of `evaluate`. */
  var kept: {
    model: Awaited<ReturnType<typeof library.loadModel>>;
    memory: Awaited<ReturnType<typeof library.openMemory>>;
    learning: Awaited<ReturnType<typeof library.openLearning>>;
  };
}

/** Polls by a timer: the default asks in each frame, and a page behind another one has none. */
export const waitForLibrary = async (page: Page): Promise<void> => {
  await page.waitForFunction(() => globalThis.ruvllm !== undefined, undefined, { polling: 50 });
};

/** A page that has nothing but the library. Disposing of it throws if its console has warnings or errors. */
export async function openLibraryPage(site: Site, expectedStatuses: readonly number[] = []): Promise<WatchedPage> {
  const watched = await openPage(`${site.url}blank.html`, { expectedStatuses, isFresh: true });
  await waitForLibrary(watched.page);
  return watched;
}

/** Another tab of the same browser profile. */
export async function openSecondTab(watched: WatchedPage): Promise<Page> {
  const page = await watched.page.context().newPage();
  await page.goto(watched.page.url());
  return page;
}
