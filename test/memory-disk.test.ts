// A server whose disk stops taking data, and takes it again: the kernel refuses to make files larger (EFBIG), as on a full disk.
import { execFileSync, spawnSync } from 'node:child_process';
import { afterAll, expect, test } from 'vitest';
import { createServeFolder, type ServeProcess } from './support/serve-process.ts';

const canLimit = spawnSync('prlimit', ['--version']).status === 0;
if (!canLimit) console.log('tests of a failing disk skipped: they need prlimit (util-linux)');

const folder = createServeFolder({ contextLength: 512 });
afterAll(() => folder.dispose());

/** Limits the size of every file that the server writes; null: no limit. */
function limitFiles({ process: { pid } }: ServeProcess, bytes: number | null): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes ?? 'unlimited'}:unlimited`]);
}

test.skipIf(!canLimit)(
  '[MS29] keeps its records while the disk fails, refuses changes, and recovers by itself',
  async () => {
    const server = await folder.start(folder.model);
    const ask = async (path: string, body?: unknown) => {
      const response = await fetch(server.url + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const add = (text: string) => ask('/admin/memory/add', { text });
    const read = (id: string) => ask('/admin/memory/get', { id });
    const degraded = async () => (await ask('/health')).body['degraded'];

    const kept: string[] = [];
    for (let i = 0; i < 5; i++) kept.push((await add(`record ${i}`)).body['id'] as string);
    const complete = () => ask('/v1/chat/completions', { model: 'tiny', messages: [{ role: 'user', content: 'a' }], max_tokens: 2 }); // prettier-ignore
    const rate = (id: unknown) => ask('/v1/feedback', { request_id: id, thumbs: 'up' });
    const earlier = (await complete()).body['id'];
    expect((await rate(earlier)).status).toBe(200);
    limitFiles(server, 1);
    for (let i = 0; i < 6; i++) expect((await add(`lost ${i}`)).status).toBe(503);
    expect((await ask('/admin/memory/remove', { ids: [kept[0]] })).status).toBe(503);
    expect((await complete()).status).toBe(200);
    const feedback = await rate(earlier);
    expect(feedback.status).toBe(503);
    expect(JSON.stringify(feedback.body)).not.toContain(folder.data);
    for (const id of kept) expect((await read(id)).status).toBe(200);
    expect(await degraded()).toEqual(['memory']);

    limitFiles(server, null);
    await expect.poll(async () => (await add('after')).status, { timeout: 20_000 }).toBe(200);
    expect(await degraded()).toBe(undefined);
    for (const id of kept) expect((await read(id)).status).toBe(200);
    server.process.kill('SIGKILL');
    await server.exit;
    const again = await folder.start(folder.model);
    const list = await fetch(`${again.url}/admin/memory/list`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }); // prettier-ignore
    const texts = JSON.stringify(await list.json());
    for (let i = 0; i < 5; i++) expect(texts).toContain(`record ${i}`);
    expect(texts).toContain('after');
    expect(texts).not.toContain('lost');
  },
  120_000,
);
