// The dashboard in a real Chromium, against a real server: what its first load transfers, when the chat takes input, frames per
// second while a long answer arrives, and violations of axe on every view.
//   npm run bench -- page [--visits N] [--kilobytes N]
import { gzipSync } from 'node:zlib';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { canRun, countViolations, type DashboardServer, openBrowser, openPage, startDashboardServer, STORIES } from '../test/dashboard/support/index.ts'; // prettier-ignore
import { percentile, printTable } from './support/report.ts';

const { values } = parseArgs({
  options: { visits: { type: 'string', default: '7' }, kilobytes: { type: 'string', default: '200' } },
});
if (!canRun) process.exit(2);

const VIEWS = ['chat', 'live', 'audit', 'memory', 'learning', 'models', 'keys'];
const SCREENS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [
    { width: 1280, height: 800 },
    { width: 390, height: 844 },
  ].map((viewport) => ({ colorScheme, viewport })),
);
const TOKENS_PER_SECOND = 100;

const messageBox = (page: Page) => page.getByRole('textbox', { name: 'Message' });

/** Compressed bytes of all files that are loaded before the chat takes input. */
async function firstLoadBytes(server: DashboardServer): Promise<number> {
  await using opened = await openPage(server.url, { isFresh: true });
  await messageBox(opened.page).waitFor();
  const paths = [...new Set(opened.requests.map((url) => new URL(url).pathname))];
  const files = paths.filter((path) => path === '/' || path.startsWith('/assets/'));
  const bodies = await Promise.all(files.map(async (path) => (await server.ask(path)).arrayBuffer()));
  return bodies.reduce((sum, body) => sum + gzipSync(new Uint8Array(body), { level: 9 }).length, 0);
}

/** Time from the navigation to a message box that takes input, in an empty cache. */
async function interactiveMs(url: string): Promise<number> {
  const context = await (await openBrowser()).newContext();
  try {
    const page = await context.newPage();
    const startMs = performance.now();
    await page.goto(url);
    await messageBox(page).fill('x');
    return performance.now() - startMs;
  } finally {
    await context.close();
  }
}

/** Frames per second in each second while an answer with code, tables and formulas arrives. */
async function framesDuringAnswer(server: DashboardServer, numBytes: number): Promise<number[]> {
  await using opened = await openPage(server.url, { isFresh: true });
  const { page } = opened;
  await messageBox(page).waitFor();
  const paragraph = '## A part\n\nSome **bold** words, `code` and a [link](#/live), and $x^2 + y^2$ in a line.\n\n```ts\nconst answer: number = 42; // again\n```\n\n| a | b |\n|:--|--:|\n| one | 1 |\n\n'; // prettier-ignore
  const text = paragraph.repeat(Math.ceil(numBytes / paragraph.length)).slice(0, numBytes);
  await page.evaluate(
    ({ text, tokensPerSecond }) => {
      const realFetch = globalThis.fetch;
      // The last 20 seconds at the speed of a stream; what came before, at once.
      const tokens = text.match(/[^]{1,5}/g)!;
      const numSlow = Math.min(tokens.length, 20 * tokensPerSecond);
      const parts = [tokens.slice(0, -numSlow).join(''), ...tokens.slice(-numSlow)];
      const eventOf = (delta: object, finish_reason: string | null): string =>
        `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
      globalThis.fetch = (input, options) => {
        const url = input instanceof Request ? input.url : String(input);
        if (!url.includes('/v1/chat/completions')) return realFetch(input, options);
        const encoder = new TextEncoder();
        let next = 0;
        const startMs = performance.now();
        const body = new ReadableStream({
          async pull(controller) {
            const dueMs = startMs + (next * 1000) / tokensPerSecond;
            if (dueMs > performance.now()) await new Promise((go) => setTimeout(go, dueMs - performance.now()));
            if (next < parts.length) controller.enqueue(encoder.encode(eventOf({ content: parts[next++] }, null)));
            else {
              controller.enqueue(encoder.encode(`${eventOf({}, 'stop')}data: [DONE]\n\n`));
              controller.close();
            }
          },
        });
        return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-request-id': 'bench' } })); // prettier-ignore
      };
    },
    { text, tokensPerSecond: TOKENS_PER_SECOND },
  );
  await messageBox(page).fill('A long answer, please.');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  // Awaited here: the page is closed when this function returns.
  return await page.evaluate(async () => {
    const frames: number[] = [];
    const endMs = performance.now() + 18_000;
    for (let nowMs = 0; nowMs < endMs;) frames.push((nowMs = await new Promise<number>(requestAnimationFrame)));
    const [firstMs] = frames as [number];
    const counts = Array.from({ length: 17 }, () => 0);
    for (const ms of frames) {
      const second = Math.floor((ms - firstMs) / 1000) - 1; // the first second draws what came at once
      if (second >= 0 && second < counts.length) counts[second]!++;
    }
    return counts;
  });
}

async function violationsOf(server: DashboardServer): Promise<number> {
  let total = 0;
  for (const screen of SCREENS) {
    await using opened = await openPage(server.url, { ...screen, isFresh: true });
    for (const view of VIEWS) {
      await opened.page.goto(`${server.url}#/${view}`);
      await opened.page
        .locator('main')
        .locator('a, button, input, textarea')
        .filter({ visible: true })
        .first()
        .waitFor();
      await opened.page.waitForTimeout(300);
      total += await countViolations(opened.page);
    }
  }
  return total;
}

await using server = await startDashboardServer({ modelPath: STORIES });
const times: number[] = [];
for (let i = 0; i < Number(values.visits); i++) times.push(await interactiveMs(server.url));
const frames = await framesDuringAnswer(server, Number(values.kilobytes) * 1000);
const figures = {
  first_load_kb: Math.round((await firstLoadBytes(server)) / 100) / 10,
  interactive_ms: Math.round(percentile(times.sort((a, b) => a - b), 0.5)), // prettier-ignore
  long_answer_fps: Math.round(frames.reduce((sum, count) => sum + count, 0) / frames.length),
  long_answer_worst_second: Math.min(...frames),
  axe_violations: await violationsOf(server),
};
printTable([['figure', 'value'], ...Object.entries(figures).map(([name, value]) => [name, String(value)])]);
console.log(JSON.stringify(figures));
process.exit(0); // the shared browser would keep the process running
