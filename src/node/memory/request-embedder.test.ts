import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import { createRequestEmbedder } from './request-embedder.ts';
import { openTableEmbedder } from './table-embedder.ts';

test('short texts are embedded in this thread once the table is open; of those that can wait only very short ones', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-request-embedder-'));
  const path = join(folder, 'tiny.gguf');
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7 }));
  const thread = openTableEmbedder(path);
  const sent: string[] = [];
  const remote = { ...thread, embed: (text: string) => (sent.push(text), thread.embed(text)) };
  const embedder = createRequestEmbedder(remote, path);
  const vector = await embedder.embed('the first opens the table');
  await expect.poll(async () => (await embedder.embed('short'), sent.splice(0).length)).toBe(0);

  expect(await embedder.embed('the first opens the table')).toEqual(vector);
  expect(sent).toEqual([]);
  expect(await embedder.embedLater!('the first opens the table')).toEqual(vector);
  expect(sent).toEqual([]);
  const [middle, long] = ['long '.repeat(100), 'long '.repeat(500)];
  expect(await embedder.embedLater!(middle)).toEqual(await embedder.embed(middle));
  await embedder.embed(long);
  expect(sent).toEqual([middle, long]);
  await embedder.close!();
  await thread.close();
  rmSync(folder, { recursive: true, force: true });
});
