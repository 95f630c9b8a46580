// Batches through the official client and the command line, on a server process that is killed meanwhile.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type Served, type ServeFolder, type ServeProcess } from '../support/serve-process.ts';
import { campaign } from '../support/campaign.ts';

const CANARY = 'quokkamarmalade';

let folder: ServeFolder;
beforeEach(() => {
  if (isServerBuilt) folder = createServeFolder({ contextLength: 256 });
});
afterEach(async () => {
  await folder?.here.stopAll();
  folder?.dispose();
});

const args = (): string[] => [folder.model, '--batch-concurrency', '3'];
const start = (): Promise<ServeProcess> => folder.start(...args());
const startHere = (): Promise<Served> => folder.here.start(...args());
const connect = ({ url }: Served): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const hasEnded = ({ status }: { status: string }): boolean => ['completed', 'failed', 'expired', 'cancelled'].includes(status); // prettier-ignore

async function untilEnd(client: OpenAI, id: string): Promise<OpenAI.Batch> {
  for (;;) {
    const batch = await client.batches.retrieve(id);
    if (hasEnded(batch)) return batch;
    await sleep(20);
  }
}

const jsonl = (lines: readonly object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('');
const upload = (client: OpenAI, lines: readonly object[]): Promise<OpenAI.FileObject> =>
  toFile(Buffer.from(jsonl(lines)), 'requests.jsonl').then((file) => client.files.create({ file, purpose: 'batch' }));

async function readLines(client: OpenAI, fileId: string | undefined): Promise<any[]> {
  if (fileId === undefined) return [];
  const text = await (await client.files.content(fileId)).text();
  return text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as unknown); // prettier-ignore
}

const completionOf = (id: number, maxTokens: number) => ({
  custom_id: `line-${id}`,
  method: 'POST',
  url: '/v1/completions',
  body: { model: 'tiny', prompt: `${CANARY} ${id}`, max_tokens: maxTokens, temperature: 0 },
});

describe.skipIf(!isServerBuilt)('[B2] the official client', () => {
  const ENDPOINTS = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }], max_tokens: 3 }, 'chat.completion'],
    ['/v1/completions', { prompt: 'hi', max_tokens: 3 }, 'text_completion'],
    ['/v1/embeddings', { input: ['hi', 'there'] }, 'list'],
    ['/v1/responses', { input: 'hi', max_output_tokens: 3 }, 'response'],
  ] as const;

  test('runs batches of every endpoint, lists them and deletes their files', async () => {
    const client = connect(await startHere());
    const ids: string[] = [];
    for (const [endpoint, body, object] of ENDPOINTS) {
      const lines = [0, 1].map((id) => ({ custom_id: `${id}`, method: 'POST', url: endpoint, body: { model: 'tiny', ...body } })); // prettier-ignore
      const file = await upload(client, lines);
      const created = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h' });
      const batch = await untilEnd(client, created.id);
      ids.unshift(batch.id);
      expect([batch.status, batch.request_counts], endpoint).toEqual(['completed', { total: 2, completed: 2, failed: 0 }]); // prettier-ignore
      const results = await readLines(client, batch.output_file_id);
      expect(results.map(({ custom_id: id, response }) => [id, response.status_code, response.body.object])).toEqual([
        ['0', 200, object],
        ['1', 200, object],
      ]);
      expect((await client.files.delete(file.id)).deleted).toBe(true);
      await expect(client.batches.cancel(batch.id)).rejects.toMatchObject({ status: 409 });
    }
    const listed: string[] = [];
    for await (const one of client.batches.list({ limit: 3 })) listed.push(one.id);
    expect(listed).toEqual(ids);
    const purposes: string[] = [];
    for await (const one of client.files.list()) purposes.push(one.purpose);
    expect(purposes).toEqual(ENDPOINTS.map(() => 'batch_output'));
  });
});

describe.skipIf(!isServerBuilt)('[B6] kill -9', () => {
  test('in the middle of a batch: every custom_id has one result, and no text is on disk in the clear', async () => {
    const numLines = campaign({ short: 40, long: 200 });
    const numKills = campaign({ short: 3, long: 12 });
    let server = await start();
    const lines = Array.from({ length: numLines }, (_, id) => completionOf(id, 24));
    const file = await upload(connect(server), lines);
    const { id } = await connect(server).batches.create({ input_file_id: file.id, endpoint: '/v1/completions', completion_window: '24h' }); // prettier-ignore
    const seen: number[] = [];
    for (let kill = 1; kill <= numKills; kill++) {
      const goal = Math.floor((numLines * kill) / (numKills + 1));
      for (;;) {
        const { request_counts: counts } = await connect(server).batches.retrieve(id);
        if (counts!.completed >= goal) {
          seen.push(counts!.completed);
          break;
        }
        await sleep(2);
      }
      server.process.kill('SIGKILL');
      await server.exit;
      server = await start();
      const { request_counts: counts } = await connect(server).batches.retrieve(id);
      // Acknowledged progress is never lost.
      expect(counts!.completed).toBeGreaterThanOrEqual(seen.at(-1)!);
    }
    const client = connect(server);
    const batch = await untilEnd(client, id);
    expect([batch.status, batch.request_counts]).toEqual(['completed', { total: numLines, completed: numLines, failed: 0 }]); // prettier-ignore
    const results = await readLines(client, batch.output_file_id);
    expect(results.map(({ custom_id: one }) => one as string)).toEqual(lines.map((line) => line.custom_id));
    expect(seen.some((count) => count < numLines)).toBe(true);
    const leaks = readdirSync(folder.data, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => readFileSync(path).includes(CANARY));
    expect(leaks).toEqual([]);
  });
});

describe.skipIf(!isServerBuilt)('[B2] ruvllm batch', () => {
  test('creates a batch, waits for it, lists and shows it, and prints the results', async () => {
    const { url } = await startHere();
    const path = join(folder.path, 'requests.jsonl');
    writeFileSync(path, jsonl([completionOf(0, 2), { ...completionOf(1, 2), body: { model: 'none', prompt: 'a' } }]));
    const run = async (...args: string[]) => {
      const { status, stdout } = await folder.here.run('batch', ...args, '--url', url);
      return { status, body: JSON.parse(stdout) as any };
    };
    const created = await run('create', path, '--wait');
    expect([created.status, created.body.status, created.body.endpoint]).toEqual([0, 'completed', '/v1/completions']);
    const { id } = created.body as { id: string };
    expect((await run('list')).body.batches.map((batch: { id: string }) => batch.id)).toEqual([id]);
    expect((await run('show', id)).body).toEqual(created.body);
    const ids = (results: any[]): string[] => results.map(({ custom_id: one }) => one as string);
    expect(ids((await run('results', id)).body.results)).toEqual(['line-0', 'line-1']);
    expect(ids((await run('results', id, '--errors')).body.results)).toEqual(['line-1']);
    expect((await run('cancel', id)).status).not.toBe(0);
    expect((await run('show', 'batch_none')).body.error.code).toBe('not_found');
  });
});
