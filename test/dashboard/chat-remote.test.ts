// The router may send a message to another server: the chat says so before, and marks the answer after.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canRun, chunkOf, type DashboardServer, openPage, startDashboardServer } from './support/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-remote-'));
let remote: Server;
let server: DashboardServer;
/** The open answers of the remote server; each ends when the test says so. */
const open: ServerResponse[] = [];

beforeAll(async () => {
  if (!canRun) return;
  remote = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunkOf({ role: 'assistant', content: 'From afar' }));
    open.push(response);
  });
  await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(remote.address() as AddressInfo).port}/v1`;
  const candidates = [
    { kind: 'local', id: 'here', model: 'stories260K-f32' },
    { kind: 'remote', id: 'cloud', url, model: 'm', pricePerMTokens: { input: 1, output: 1 } },
  ];
  const path = join(folder, 'routes.json');
  writeFileSync(path, JSON.stringify({ candidates, default: 'cloud' }));
  server = await startDashboardServer({ args: ['--route-config', path] });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  remote?.closeAllConnections();
  remote?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!canRun)('a router with a remote candidate', () => {
  test('is named before a message is sent; its answers and running requests are marked', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await page.getByText('The router may send your messages to cloud, outside this server.').waitFor();
    expect(await page.getByText('only to this server').count()).toBe(0);
    const model = page.getByRole('combobox', { name: 'Model' });
    await model.selectOption(server.model);
    await page.getByText('Your messages are sent only to this server.').waitFor();
    await model.selectOption('auto');
    await page.getByRole('textbox', { name: 'Message' }).fill('Hello');
    await page.keyboard.press('Enter');
    await page.getByText('From afar').waitFor();
    await using live = await openPage(`${server.url}#/live`);
    const row = live.page.getByRole('grid', { name: 'Running and queued requests' }).getByRole('row').nth(1);
    await row.getByRole('gridcell', { name: 'cloud' }).last().waitFor();
    const heads = await live.page
      .getByRole('grid', { name: 'Running and queued requests' })
      .getByRole('columnheader')
      .allTextContents();
    expect((await row.getByRole('gridcell').allTextContents())[heads.indexOf('Node')]).toBe('cloud');
    for (const response of open) response.end(`${chunkOf({}, 'stop')}data: [DONE]\n\n`);
    await page.getByText(/via cloud, outside this server/).waitFor();
  });
});
