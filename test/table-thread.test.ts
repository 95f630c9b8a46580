// The thread of the built package that prepares vocabularies.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { flattenVocabulary } from '../src/runtime/vocabulary.ts';
import { buildTableData } from '../src/sampling/grammar/index.ts';
import { createTokenizer } from '../src/tokenizers/index.ts';
import { openModelFile } from '../src/platform/node/files/open-model-file.ts';
import { importDist } from './support/import-dist.ts';
import { buildRandomModel } from './support/random-model.ts';

const { openTableThread } =
  await importDist<typeof import('../src/node/text/table-thread.ts')>('node/text/table-thread.js');

let folder = '';
let path = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-table-'));
  path = join(folder, 'model.gguf');
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3 }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("[TT5] the thread's table equals the one built in place, in shared memory", async () => {
  const gguf = openModelFile(path);
  const tokenizer = createTokenizer(gguf.metadata);
  gguf.source.close();
  const thread = openTableThread(path);
  const table = await thread.build([2]);
  expect(table).toEqual(buildTableData(flattenVocabulary(tokenizer, [2])));
  expect(table!.vocabulary.isControl.filter((value) => value === 1).length).toBeGreaterThan(1);
  expect(table!.skip.buffer).toBeInstanceOf(SharedArrayBuffer);
  await thread.dispose();
});

test('[TT1] rejects files that changed after the model was loaded', async () => {
  const thread = openTableThread(path);
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 4 }));
  expect(await thread.build([2])).toBe(null);
  await thread.dispose();
});
