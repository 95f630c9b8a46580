// Chromium from the machine: the packages bring none.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function findBrowser(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const found = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((path) => existsSync(path));
  return process.env['RUVLLM_CHROMIUM'] || found || null;
}

/** Where Chromium is; null: nowhere, and what needs it is skipped. */
export const browserPath = findBrowser();

let opened: Promise<Browser> | null = null;

/** The browser, once for all tests of a file. */
export function openBrowser(): Promise<Browser> {
  // Root has no sandbox to use, and what is opened here is our own.
  opened ??= chromium.launch({ executablePath: browserPath!, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  return opened;
}

export async function closeBrowser(): Promise<void> {
  await (await opened)?.close();
  opened = null;
}
