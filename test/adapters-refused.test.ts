// Adapters that do not fit the model, through the server and the command line.
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdapterBase, describeAdapterFile } from '../src/adapters/index.ts';
import { createMemorySink, createMemorySource, openGguf, writeGguf } from '../src/gguf/index.ts';
import { readShape } from '../src/models/shape.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { randomAdapter } from './support/random-adapter.ts';
import { createServeFolder, type ServeFolder, type Served } from './support/serve-process.ts';

let serving: ServeFolder;
let server: Served;
let base: AdapterBase;
const CASES = [
  ['another architecture', /is an adapter for qwen2, the model is llama/],
  ['other shapes', 'blk.0.ffn_gate changes a matrix of 192 x 96, the model has 160 x 96'],
  ['more layers', 'blk.4.attn_q is in layer 4, the model has 4 layers'],
  ['a model file', /is not an adapter/],
] as const;
const pathOf = (name: string): string => `${serving.data}-${name.replaceAll(' ', '-')}.gguf`;

async function writeAdapter(name: string, of: AdapterBase): Promise<void> {
  const sink = createMemorySink();
  writeGguf(describeAdapterFile(await randomAdapter(of, { seed: 1 })), sink);
  writeFileSync(pathOf(name), sink.toBytes());
}

interface Answer {
  readonly error?: { readonly message: string; readonly code: string };
  readonly data?: readonly { readonly id: string }[];
  readonly choices?: readonly { readonly text: string }[];
}
async function call(method: string, path: string, body?: object): Promise<{ status: number; body: Answer }> {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}
const load = (name: string) => call('POST', '/admin/adapters', { name: 'extra', path: pathOf(name) });
const say = async (model: string): Promise<string> =>
  (await call('POST', '/v1/completions', { model, prompt: 'a', max_tokens: 6, temperature: 0 })).body.choices![0]!.text;

beforeAll(async () => {
  if (!isServerBuilt) return;
  serving = createServeFolder({ contextLength: 64 });
  const model = readFileSync(serving.model);
  base = readShape(openGguf(createMemorySource(model)));
  await writeAdapter('that fits', base);
  await writeAdapter('another architecture', { ...base, architecture: 'qwen2' });
  await writeAdapter('other shapes', { ...base, feedForwardDim: base.feedForwardDim + 32 });
  await writeAdapter('more layers', { ...base, numLayers: base.numLayers + 1 });
  writeFileSync(pathOf('a model file'), model);
  server = await serving.here.start(`tiny=${serving.model}`, '--adapter-folder', serving.path);
});
afterAll(async () => {
  await serving?.here.stopAll();
  serving?.dispose();
});

describe.skipIf(!isServerBuilt)('an adapter that does not fit', () => {
  test.each(CASES)('the server rejects %s with both sides and changes nothing', async (name, message) => {
    const before = await say('tiny');
    const { status, body } = await load(name);
    expect([status, body.error]).toEqual([
      400,
      expect.objectContaining({ message: expect.stringMatching(message) as string }),
    ]);
    expect((await call('GET', '/admin/adapters')).body.data).toEqual([]);
    expect(await say('tiny')).toBe(before);
  });

  test('the server rejects a missing file and a folder', async () => {
    for (const path of ['nowhere.gguf', serving.data]) {
      const { status, body } = await call('POST', '/admin/adapters', { name: 'extra', path });
      expect([status, body.error?.message]).toEqual([400, expect.stringContaining(path)]);
    }
  });

  test('does not replace one that fits', async () => {
    expect((await load('that fits')).status).toBe(201);
    const adapted = await say('tiny:extra');
    expect(adapted).not.toBe(await say('tiny'));
    for (const [name] of CASES) expect((await load(name)).status).toBe(400);
    expect(await say('tiny:extra')).toBe(adapted);
    expect((await call('GET', '/admin/adapters')).body.data).toMatchObject([{ id: 'tiny:extra' }]);
  });

  test.each(CASES)('the command line rejects %s', async (name, message) => {
    const { status, stdout } = await serving.here.run(
      'run',
      serving.model,
      'a',
      '--max-tokens',
      '1',
      '--adapter',
      pathOf(name),
    );
    expect(status).toBe(1);
    expect((JSON.parse(stdout) as Answer).error!.message).toMatch(message);
  });
});
