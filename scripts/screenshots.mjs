// npm run screenshots [-- MODEL]: the pictures of the documentation and a short recording, made from the running product. Requires Chromium on the PATH.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from './build.mjs';
import { recordPage } from './record-page.mjs';
import { ensureInstalled, root } from './setup.mjs';

ensureInstalled();
build();
const { chromium } = await import('playwright-core');
const out = join(root, 'docs/images');
mkdirSync(out, { recursive: true });

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-screenshots-'));
const server = spawn(
  process.execPath,
  [join(root, 'bin/ruvllm.mjs'), 'serve', ...process.argv.slice(2), '--port', '0', '--json'],
  {
    // A separate memory, so that pictures show no private data.
    env: { ...process.env, RUVLLM_DATA_DIR: join(folder, 'data'), RUVLLM_STATE_DIR: join(folder, 'state') },
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
const { url, models } = await new Promise((resolve, reject) => {
  let text = '';
  server.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
    if (text.includes('\n')) resolve(JSON.parse(text.slice(0, text.indexOf('\n'))));
  });
  server.once('exit', (code) => reject(new Error(`ruvllm serve ended with ${code}`)));
});
const model = models[0];

async function post(path, body) {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

const SYSTEM = 'You are the assistant of a small museum of ships. You answer in two short sentences, and you say so when you do not know.'; // prettier-ignore
const QUESTIONS = [
  'When does the museum open on Sundays?',
  'Which ship is the oldest one you have?',
  'Can I bring my dog?',
  'Where can I leave my bicycle?',
];

/** Sample activity: requests with a common prefix, rated answers, linked records. */
async function live() {
  let last = null;
  for (const content of QUESTIONS) {
    const messages = [{ role: 'system', content: SYSTEM }, { role: 'user', content }]; // prettier-ignore
    last = await post('/v1/chat/completions', { model, messages, max_tokens: 40, temperature: 0, session: 'visitor' });
  }
  await post('/v1/feedback', { request_id: last.id, correction: 'There is a stand for bicycles at the gate.' });
  const texts = ['The museum has three ships.', 'The Anna is a fishing boat of 1898.', 'The Berta is a steam tug.', 'The Anna lies at the north pier.', 'The north pier opens at ten.']; // prettier-ignore
  const ids = [];
  for (const text of texts) ids.push((await post('/admin/memory/add', { text })).id);
  for (const [from, to] of [[0, 1], [0, 2], [1, 3], [3, 4]]) await post('/admin/memory/link', { from: ids[from], to: ids[to], relation: 'contains' }); // prettier-ignore
  return { requestId: last.id.replace('chatcmpl-', ''), recordId: ids[0] };
}

/** A question, its answer, a correction, and the same question again. */
async function recordCorrection() {
  const context = await browser.newContext({ viewport: { width: 1000, height: 640 }, colorScheme: 'light' });
  await context.addInitScript(() => localStorage.setItem('ruvllm.tour', 'done'));
  const page = await context.newPage();
  await page.goto(url);
  const box = page.getByRole('textbox', { name: 'Message' });
  await box.waitFor();
  const stop = await recordPage(browser, page);
  const pause = (ms) => page.waitForTimeout(ms);
  await page.getByRole('button', { name: 'Generation settings' }).click();
  await page.getByLabel('Preset', { exact: true }).selectOption('Precise');
  await page.getByLabel('Max tokens').fill('40');
  await pause(800);
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await box.pressSequentially('Once upon a time there was a fox', { delay: 40 });
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Correct this answer' }).waitFor({ timeout: 120_000 });
  await pause(1200);
  await page.getByRole('button', { name: 'Correct this answer' }).click();
  await page.getByLabel('Corrected answer').pressSequentially('who lived under the old oak tree.', { delay: 25 });
  await page.getByRole('button', { name: 'Send correction' }).click();
  await page.getByRole('button', { name: 'Ask again' }).click({ timeout: 120_000 });
  await pause(5000);
  await page.goto(`${url}/#/learning`);
  await pause(2500);
  const file = await stop();
  await context.close();
  return file;
}

const browser = await chromium.launch({
  ...(process.env.RUVLLM_CHROMIUM ? { executablePath: process.env.RUVLLM_CHROMIUM } : { executablePath: '/usr/bin/chromium' }), // prettier-ignore
  args: ['--no-sandbox', '--force-color-profile=srgb'],
});
try {
  const { requestId, recordId } = await live();
  const context = await browser.newContext({ viewport: { width: 1200, height: 760 }, colorScheme: 'light' });
  await context.addInitScript(() => location.origin !== 'null' && localStorage.setItem('ruvllm.tour', 'done'));
  const page = await context.newPage();
  async function take(name, path, prepare = async () => {}) {
    await page.goto('about:blank');
    await page.goto(`${url}/#/${path}`);
    await page.waitForTimeout(800);
    await prepare();
    await page.screenshot({ path: join(out, `${name}.png`) });
    console.log(`docs/images/${name}.png`);
  }
  await take('chat', 'chat', async () => {
    await page.getByRole('button', { name: 'Generation settings' }).click();
    await page.getByLabel('Temperature').fill('0');
    await page.getByLabel('Max tokens').fill('60');
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click(); // prettier-ignore
    await page.getByPlaceholder('Write a message').fill('What is a lighthouse for? Two sentences.');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: /good|up/i }).first().waitFor({ timeout: 120_000 }); // prettier-ignore
  });
  await page.setViewportSize({ width: 1200, height: 1180 });
  await take('live', 'live', async () => {
    const running = QUESTIONS.map((content) => post('/v1/chat/completions', { model, messages: [{ role: 'system', content: SYSTEM }, { role: 'user', content: `${content} Please explain.` }], max_tokens: 120 })); // prettier-ignore
    await page.getByRole('grid').waitFor();
    await page.waitForTimeout(3500);
    void Promise.allSettled(running);
  });
  await page.setViewportSize({ width: 1200, height: 760 });
  await take('request', `audit/${requestId}`);
  await take('memory', `memory/${recordId}`, async () => {
    await page.getByLabel('Depth').selectOption('3');
    await page.waitForTimeout(800);
  });
  await take('models', 'models');
  await page.emulateMedia({ colorScheme: 'dark' });
  await take('learning', 'learning');
  writeFileSync(join(out, 'correction.webm'), await recordCorrection());
  console.log('docs/images/correction.webm');
} finally {
  await browser.close();
  server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
