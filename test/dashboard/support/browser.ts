// Uses the system's Chromium, because the packages include none.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function findBrowser(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const candidates = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return process.env['RUVLLM_CHROMIUM'] || candidates.find((path) => existsSync(path)) || null;
}

/** The path of Chromium; null: not found, and the tests that need it are skipped. */
export const browserPath = findBrowser();

let launch: Promise<Browser> | null = null;

/** Returns the browser that all files of a worker process share; Playwright ends it with the process. */
export function openBrowser(): Promise<Browser> {
  // The sandbox does not work as root, and the tests open only our own pages.
  launch ??= chromium.launch({ executablePath: browserPath!, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] }); // prettier-ignore
  return launch;
}
