// Images in the chat: no model sees them, and the page says so.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canRun, type DashboardServer, openPage, startDashboardServer } from './support/index.ts';

const servers: DashboardServer[] = [];
beforeAll(async () => {
  if (!canRun) return;
  for (const args of [[], ['--no-memory']]) servers.push(await startDashboardServer({ args }));
});
afterAll(async () => {
  for (const server of servers) await server[Symbol.asyncDispose]();
});

describe.skipIf(!canRun)('an image', () => {
  test.each([
    ['with a memory', 0],
    ['without a memory', 1],
  ])('that is dropped or pasted is refused with the reason: %s', async (_name, index) => {
    await using opened = await openPage(servers[index]!.url);
    const { page, requests } = opened;
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    const reason = (name: string) =>
      page.getByText(`${name} was not added: the models of this server cannot see images.`);
    for (const [name, type, target] of [
      ['cat.png', 'drop', '.thread'],
      ['dog.webp', 'paste', '.composer textarea'],
    ] as const) {
      const prevented = await page.locator(target).evaluate((element, [fileName, event]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(['x'], fileName!, { type: `image/${fileName!.split('.')[1]}` }));
        const init = { bubbles: true, cancelable: true };
        const sent =
          event === 'drop'
            ? new DragEvent('drop', { ...init, dataTransfer: transfer })
            : new ClipboardEvent('paste', { ...init, clipboardData: transfer });
        return !element.dispatchEvent(sent);
      }, [name, type]); // prettier-ignore
      // Otherwise the browser would show the image instead of the page.
      expect(prevented).toBe(true);
      await reason(name).waitFor();
    }
    expect(requests.filter((url) => url.includes('/documents'))).toEqual([]);
  });
});
