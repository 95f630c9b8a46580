// Pages of other sites in real Chromium against a server without keys: they read nothing and change nothing.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath } from '../dashboard/support/browser.ts';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from '../support/serve-process.ts';

const canRun = isServerBuilt && browserPath !== null;
if (!canRun) console.log('tests of browser attacks skipped: they need dist/ and a Chromium on the PATH');

let folder: ServeFolder;
let server: ServeProcess;
let site: Server;
let browser: Browser;
let evil: string;

beforeAll(async () => {
  if (!canRun) return;
  folder = createServeFolder({ contextLength: 128 });
  server = await folder.start(folder.model, '--memory-embedder', 'static');
  site = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>evil</title><body>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  evil = `http://evil.test:${(site.address() as AddressInfo).port}/`;
  // Names of the attacker that lead to this machine, as with DNS rebinding.
  const rules = '--host-resolver-rules=MAP evil.test 127.0.0.1, MAP rebind.test 127.0.0.1';
  browser = await chromium.launch({ executablePath: browserPath!, args: ['--no-sandbox', '--disable-dev-shm-usage', rules] }); // prettier-ignore
});
afterAll(async () => {
  await browser?.close();
  site?.close();
  folder?.dispose();
});

const post = async (path: string): Promise<Record<string, unknown>> =>
  (await (await fetch(server.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })).json()) as Record<string, unknown>; // prettier-ignore
/** State that an attack could have changed. */
const readState = async (): Promise<unknown> => ({
  records: await post('/admin/memory/list'),
  audit: ((await post('/admin/memory/audit/search')) as { entries?: unknown[] }).entries?.length,
  keys: (await (await fetch(`${server.url}/admin/keys`)).json()) as unknown,
});

/** The page, and the statuses of the server's answers to it that a browser reports, also of those that the page cannot read. */
async function open(url: string): Promise<{ page: Page; statuses: Set<number> }> {
  const page = await browser.newPage();
  const statuses = new Set<number>();
  page.on('response', (response) => response.url().startsWith(server.url) && statuses.add(response.status()));
  await page.goto(url);
  return { page, statuses };
}

describe.skipIf(!canRun)('a page of another site', () => {
  test('[K6] reads nothing by fetch, EventSource, WebSocket or script', async () => {
    const { page } = await open(evil);
    const results = await page.evaluate(async (url) => {
      const outcome = (work: Promise<unknown>): Promise<string> => work.then((value) => `read ${String(value)}`, () => 'refused'); // prettier-ignore
      const event = (target: EventTarget, good: string): Promise<string> =>
        new Promise((resolve, reject) => {
          target.addEventListener(good, () => resolve(good));
          target.addEventListener('error', () => reject(new Error('refused')));
        });
      const element = (name: 'script' | 'img' | 'link', attribute: string): Promise<string> => {
        const one = document.createElement(name);
        if (name === 'link') one.setAttribute('rel', 'stylesheet');
        one.setAttribute(attribute, `${url}/v1/models`);
        document.body.append(one);
        return event(one, 'load');
      };
      const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
      return {
        fetch: await outcome(fetch(`${url}/v1/models`)),
        json: await outcome(fetch(`${url}/admin/memory/list`, json)),
        events: await outcome(event(new EventSource(`${url}/admin/live/events`), 'open')),
        socket: await outcome(event(new WebSocket(`${url.replace('http', 'ws')}/admin/live/events`), 'open')),
        script: await outcome(element('script', 'src')),
        image: await outcome(element('img', 'src')),
        style: await outcome(element('link', 'href')),
      };
    }, server.url);
    expect(results).toEqual(Object.fromEntries(Object.keys(results).map((name) => [name, 'refused'])));
    await page.close();
  });

  test('[K6] changes nothing by text/plain posts, forms, beacons and frames without an origin', async () => {
    const before = await readState();
    const { page, statuses } = await open(evil);
    const numAnswered = await page.evaluate(async (url) => {
      const body = JSON.stringify({ text: 'planted', name: 'planted', model: 'tiny', prompt: 'a', max_tokens: 1 });
      const paths = ['/admin/memory/add', '/admin/keys', '/v1/completions'];
      const sent: Promise<unknown>[] = paths.map((path) =>
        fetch(url + path, { method: 'POST', mode: 'no-cors', body }),
      );
      for (const path of paths) {
        navigator.sendBeacon(url + path, body);
        const frame = document.createElement('iframe');
        frame.name = `frame${path}`;
        const form = document.createElement('form');
        Object.assign(form, { method: 'post', enctype: 'text/plain', action: url + path, target: frame.name });
        const field = document.createElement('input');
        // The usual trick: name and value together are JSON.
        field.name = `${body.slice(0, -1)},"user":"`;
        field.value = '"}';
        form.append(field);
        document.body.append(frame, form);
        sent.push(new Promise((resolve) => frame.addEventListener('load', resolve)));
        form.submit();
        // A sandboxed frame has the origin "null".
        const sandbox = document.createElement('iframe');
        sandbox.setAttribute('sandbox', 'allow-scripts');
        sandbox.srcdoc = `<script>fetch(${JSON.stringify(url + path)}, { method: 'POST', mode: 'no-cors', body: ${JSON.stringify(body)} }).finally(() => parent.postMessage('sent', '*'))</script>`;
        sent.push(new Promise((resolve) => addEventListener('message', resolve, { once: true })));
        document.body.append(sandbox);
      }
      return (await Promise.allSettled(sent)).length;
    }, server.url);
    expect(numAnswered).toBe(9);
    expect([...statuses]).toEqual([403]);
    expect(await readState()).toEqual(before);
    await page.close();
  });

  test('[K6] cannot show the dashboard in a frame', async () => {
    const { page } = await open(evil);
    await page.evaluate(async (url) => {
      const frame = document.createElement('iframe');
      frame.src = `${url}/`;
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
    }, server.url);
    // The page hears of the load before the driver hears of the address.
    await expect.poll(() => page.frames().at(-1)!.url()).toMatch(/^(chrome-error|http):/);
    expect(page.frames().at(-1)!.url()).toMatch(/^chrome-error:/);
    await page.close();
  });

  test('[K6] gets nothing by a host name that leads to this machine', async () => {
    const rebound = server.url.replace('127.0.0.1', 'rebind.test');
    const page = await browser.newPage();
    const response = await page.goto(`${rebound}/`);
    expect([response?.status(), await response?.json()]).toMatchObject([403, { error: { code: 'host_not_allowed' } }]);
    const statuses = await page.evaluate(async () => {
      const ask = async (path: string, body?: string): Promise<number> =>
        (await fetch(path, body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body })).status; // prettier-ignore
      return [await ask('/v1/models'), await ask('/admin/keys'), await ask('/admin/memory/add', '{"text":"planted"}')];
    });
    expect(statuses).toEqual([403, 403, 403]);
    await page.close();
  });

  test('the page itself still works by its own name', async () => {
    const page = await browser.newPage();
    expect((await page.goto(`${server.url}/`))?.status()).toBe(200);
    expect(await page.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200);
    await page.close();
  });
});
