import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { campaign } from '../../support/campaign.ts';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

async function runAxe(page: Page): Promise<Violation[]> {
  // Once for a page. Evaluated rather than added as a <script>, which the content security policy would block.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } };
    return (await axe.run({ resultTypes: ['violations'] })).violations;
  });
}

/** The number of elements of the current page that violate a rule of axe, whatever its impact. */
export async function countViolations(page: Page): Promise<number> {
  return (await runAxe(page)).reduce((sum, { nodes }) => sum + nodes.length, 0);
}

/** Returns the serious and critical axe violations of the current page, one line each. */
export async function findViolations(page: Page): Promise<string[]> {
  return (await runAxe(page))
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary ?? ''}`));
}

const SCREENS = {
  'light desktop': { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  'dark desktop': { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  'light phone': { colorScheme: 'light', viewport: { width: 360, height: 740 } },
  'dark phone': { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
} as const;

/** The screens to check a view on: all in the long form; in the short form one, another for each view. */
export const screensOf = (short: keyof typeof SCREENS) =>
  campaign({ short: [SCREENS[short]], long: Object.values(SCREENS) });
