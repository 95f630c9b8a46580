// Images in the chat: a model with a projector gets them, and the page says when a model cannot see them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { paintPng } from '../support/make-png.ts';
import { buildRandomModel } from '../support/random-model.ts';
import { buildRandomVision, imageVocabulary } from '../support/random-vision.ts';
import { canRun, type DashboardServer, findLayoutFaults, findViolations, openPage, sharedDashboardServer, startDashboardServer } from './support/index.ts'; // prettier-ignore

const DIM = 96;
const WIDE = paintPng(2000, 500, (x, y) => [x % 256, y % 256, 0]);
const SMALL = paintPng(30, 20, (x) => [255, x * 8, 0]);

/** Drops or pastes a file; returns whether the page took the event from the browser, which would show the file instead of the page. */
async function give(
  page: Page,
  event: 'drop' | 'paste',
  file: { name: string; type: string; bytes: Uint8Array },
): Promise<boolean> {
  const target = event === 'drop' ? '.thread' : '.composer textarea';
  return page.locator(target).evaluate(
    (element, { kind, name, type, base64 }) => {
      const transfer = new DataTransfer();
      const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
      transfer.items.add(new File([bytes], name, { type }));
      const init = { bubbles: true, cancelable: true };
      const sent =
        kind === 'drop'
          ? new DragEvent('drop', { ...init, dataTransfer: transfer })
          : new ClipboardEvent('paste', { ...init, clipboardData: transfer });
      return !element.dispatchEvent(sent);
    },
    { kind: event, name: file.name, type: file.type, base64: Buffer.from(file.bytes).toString('base64') },
  );
}

const png = (name: string, bytes: Uint8Array) => ({ name, type: 'image/png', bytes });

interface SentPart {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
}

describe.skipIf(!canRun)('an image for a model with a projector', () => {
  let folder: string;
  let server: DashboardServer;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ruvllm-chat-images-'));
    const modelPath = join(folder, 'seer.gguf');
    const mmproj = join(folder, 'mmproj.gguf');
    const shape = { contextLength: 1024 };
    writeFileSync(modelPath, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape, metadata: imageVocabulary() })); // prettier-ignore
    writeFileSync(mmproj, buildRandomVision({ outputDim: DIM }));
    const args = ['--mmproj', mmproj, '--chat-template', 'chatml'];
    server = await startDashboardServer({ modelPath, args });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const openChat = async () => {
    const opened = await openPage(server.url);
    const { page } = opened;
    /** The contents of the last user message of each request. */
    const sent: (string | SentPart[])[] = [];
    await page.route('**/v1/chat/completions', (route) => {
      const body = route.request().postDataJSON() as { messages: { role: string; content: string | SentPart[] }[] };
      sent.push(body.messages.findLast(({ role }) => role === 'user')!.content);
      return route.continue({ postData: JSON.stringify({ ...body, max_tokens: 8 }) });
    });
    const message = page.getByRole('textbox', { name: 'Message' });
    // The model is listed, so the page knows that it sees images.
    await page.getByRole('button', { name: 'Add images, or files to the memory' }).waitFor();
    return { opened, page, sent, message };
  };

  test('is pasted or dropped, shown, sent, answered, kept and sent again with an edited message', async () => {
    const { opened, page, sent, message } = await openChat();
    await using _ = opened;
    expect(await give(page, 'paste', png('wide.png', WIDE))).toBe(true);
    expect(await give(page, 'drop', png('small.png', SMALL))).toBe(true);
    expect(await give(page, 'drop', png('mistake.png', SMALL))).toBe(true);
    await page.getByRole('button', { name: 'Remove mistake.png' }).click();
    await page.getByRole('img', { name: 'small.png' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    expect(await findLayoutFaults(page)).toEqual([]);
    await message.fill('what is it');
    await page.keyboard.press('Enter');
    await page.locator('.answer-details').waitFor();
    expect(await page.locator('.composer ~ .images, .images.attached').count()).toBe(0);
    const [first] = sent as [SentPart[]];
    expect(first.map(({ type }) => type)).toEqual(['image_url', 'image_url', 'text']);
    expect(first[2]!.text).toBe('what is it');
    // Large images are scaled down, small ones keep their size.
    const sizes = await page.evaluate(
      (urls) =>
        Promise.all(
          urls.map(async (url) => {
            const image = new Image();
            image.src = url;
            await image.decode();
            return [image.width, image.height];
          }),
        ),
      first.slice(0, 2).map(({ image_url }) => image_url!.url),
    );
    expect(sizes).toEqual([[1024, 256], [30, 20]]); // prettier-ignore
    expect(await page.getByRole('alert').count()).toBe(0);

    // Another browser shows the images of the kept conversation.
    await expect
      .poll(async () => JSON.stringify(await (await server.ask('/v1/chats')).json()), { timeout: 30_000 })
      .toContain('what is it');
    await using other = await openPage(server.url);
    await other.page.getByRole('button', { name: 'what is it', exact: true }).click();
    await other.page.getByRole('article').getByRole('img', { name: 'wide.png' }).waitFor();

    await page.getByRole('article', { name: 'You' }).hover();
    await page.getByRole('button', { name: 'Edit message' }).click();
    await page.getByRole('textbox', { name: 'Edit message' }).fill('name it');
    await page.locator('.editing').getByRole('button', { name: 'Send' }).click();
    await expect.poll(() => sent.length).toBe(2);
    expect((sent[1] as SentPart[]).map(({ type, text }) => text ?? type)).toEqual(['image_url', 'image_url', 'name it']); // prettier-ignore
  });

  test('needs no text, and a file that is no image is refused', async () => {
    const { opened, page, sent } = await openChat();
    await using _ = opened;
    await give(page, 'drop', png('broken.png', new TextEncoder().encode('no image')));
    await page.getByText('broken.png was not added: this browser cannot read it as an image.').waitFor();
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    await give(page, 'paste', png('alone.png', SMALL));
    await page.getByRole('img', { name: 'alone.png' }).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.answer-details').waitFor();
    expect((sent[0] as SentPart[]).map(({ type }) => type)).toEqual(['image_url']);
    // A message without text is listed by its image.
    await page.getByRole('button', { name: 'alone.png', exact: true }).waitFor();
  });
});

describe.skipIf(!canRun)('an image for a model without a projector', () => {
  const servers: DashboardServer[] = [];
  beforeAll(async () => {
    for (const kind of ['open', 'bare'] as const) servers.push(await sharedDashboardServer(kind));
  });

  test.each([
    ['with a memory', 0],
    ['without a memory', 1],
  ])('is refused with the reason when it is dropped or pasted: %s', async (_name, index) => {
    await using opened = await openPage(servers[index]!.url);
    const { page, requests } = opened;
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    for (const event of ['drop', 'paste'] as const) {
      expect(await give(page, event, png(`${event}.png`, SMALL))).toBe(true);
      await page.getByText(new RegExp(`${event}\\.png was not added: .*stories.* cannot see images`, 'i')).waitFor();
    }
    expect(await page.locator('.images').count()).toBe(0);
    expect(requests.filter((url) => url.includes('/documents'))).toEqual([]);
  });
});
