import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  canRun,
  type DashboardServer,
  findViolations,
  openPage,
  startDashboardServer,
  STORIES,
} from './support/index.ts';

let server: DashboardServer;
const tokenOf = (name: string): string => server.tokens.get(name)!.token;
beforeAll(async () => {
  if (!canRun) return;
  server = await startDashboardServer({
    keys: {
      root: ['admin'],
      user: ['inference'],
      reader: ['read-only'],
    },
    modelPath: STORIES,
    args: ['--no-memory'],
  });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

const stateOf = async (): Promise<string> => {
  const response = await server.ask('/admin/models', { key: tokenOf('root') });
  return ((await response.json()) as { data: { state: string }[] }).data[0]!.state;
};

describe.skipIf(!canRun)('models', () => {
  test('shows the same memory before and after loading, and no KV pages beyond the context', async () => {
    const send = async (path: string, body?: object): Promise<any> =>
      (await server.ask(path, { key: tokenOf('root'), ...(body && { method: 'POST', body }) })).json();
    const statusOf = async () => (await send('/admin/models')).data[0];
    await send('/admin/models/unload', { model: server.model });
    const unloaded = await statusOf();
    expect(unloaded).toMatchObject({ state: 'unloaded', held_bytes: 0 });
    await using opened = await openPage(`${server.url}#/models`, { key: tokenOf('root') });
    const row = opened.page.getByRole('row').filter({ hasText: server.model });
    const [, before] = /([\d.]+ MiB)/.exec(await row.getByText(/requires .* MiB/).innerText())!;
    await row.getByRole('button', { name: `Load ${server.model}` }).click();
    await row.getByText('loaded', { exact: true }).waitFor();
    await row.getByRole('cell', { name: before!, exact: true }).waitFor();
    const loaded = await statusOf();
    expect(Math.abs(unloaded.size_bytes - loaded.held_bytes)).toBeLessThan(0.1 * loaded.held_bytes);
    // Four full batches of 8 sequences of 256 tokens, 6 layers of 6 heads with 48 values of 2 bytes in keys and values.
    const { memory } = (await send('/props')).models[0].info;
    expect(memory.kvBytes).toBe(4 * 8 * 256 * (6 * 6 * 48 * 2 * 2));
  });

  test('lets an administrator unload, load and inspect a model', async () => {
    await using opened = await openPage(`${server.url}#/models`, { key: tokenOf('root') });
    const { page } = opened;
    const row = page.getByRole('row').filter({ hasText: server.model });
    await row.getByText('loaded', { exact: true }).waitFor();
    expect(await stateOf()).toBe('loaded');
    expect(await findViolations(page)).toEqual([]);
    const details = page.locator(`button[title="${server.model}"]`);
    expect(await details.textContent()).toMatch(/15M.* Q8_0$/);
    await details.click();
    await page.getByRole('dialog').getByText('architecture').first().waitFor();
    await page.keyboard.press('Escape');
    await row.getByRole('button', { name: `Unload ${server.model}` }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unload' }).click();
    await row.getByText('unloaded').waitFor();
    expect(await stateOf()).toBe('unloaded');
    await row.getByRole('button', { name: `Load ${server.model}` }).click();
    await row.getByText('loaded', { exact: true }).waitFor();
    expect(await stateOf()).toBe('loaded');
  });

  test('measures a loaded model and keeps the result with its date', async () => {
    await using opened = await openPage(`${server.url}#/models`, { key: tokenOf('root') });
    const { page } = opened;
    const row = page.getByRole('row').filter({ hasText: server.model });
    await row.getByRole('button', { name: `Measure ${server.model}` }).click();
    await row.getByText(/^[\d.,]+ tokens\/s$/).waitFor();
    const result = await row.innerText();
    expect(result).toMatch(/[\d.,]+ tokens\/s\s+prompt [\d.,]+ tokens\/s\s+(?:now|\d+ sec(?:onds?|\.) ago)/);
    await page.reload();
    const [speed] = /[\d.,]+ tokens\/s/.exec(result)!;
    await row.getByText(speed!, { exact: true }).waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  test('shows why a pull failed, and stays usable', async () => {
    await using opened = await openPage(`${server.url}#/models`, { key: tokenOf('root') });
    const { page } = opened;
    await page.getByRole('button', { name: 'Pull model' }).click();
    await page.getByRole('dialog').getByRole('textbox').fill('no-such-model');
    await page.getByRole('dialog').getByRole('button', { name: 'Pull' }).click();
    const pull = page.getByRole('region', { name: 'Pulls' }).getByRole('listitem').filter({ hasText: 'no-such-model' });
    await pull.getByText('failed', { exact: true }).waitFor();
    await pull.getByText('not found').waitFor();
    await page.reload();
    await pull.getByText('not found').waitFor();
    await page.getByRole('row').filter({ hasText: server.model }).first().waitFor();
  });

  test('shows why an adapter cannot be loaded', async () => {
    await using opened = await openPage(`${server.url}#/models`, {
      key: tokenOf('root'),
      expectedStatuses: [400, 404],
    });
    const { page } = opened;
    await page.getByRole('button', { name: 'Load adapter' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('mine');
    await page.getByRole('textbox', { name: 'Path' }).fill('/nowhere/<b>a</b>.gguf');
    await page.getByRole('dialog').getByRole('button', { name: 'Load' }).click();
    await page.getByRole('alert').getByText('/nowhere/<b>a</b>.gguf').waitFor();
  });

  test.each([
    ['reader', 'Served models'],
    ['user', 'Models'],
  ])('shows other keys no button that changes anything: %s', async (name, heading) => {
    await using opened = await openPage(`${server.url}#/models`, { key: tokenOf(name) });
    const { page } = opened;
    await page.getByRole('heading', { name: heading }).waitFor();
    await page.getByText(server.model).first().waitFor();
    expect(await page.getByRole('button', { name: /load|pull|remove|cancel/i }).count()).toBe(0);
    expect(await findViolations(page)).toEqual([]);
  });
});
