import { expect, test } from 'vitest';
import type { Model } from '../model.ts';
import { withAdapterFile } from './adapter-file.ts';
import { type GenerationRequest, PLAIN_REQUEST } from './generation-request.ts';

const request: GenerationRequest = {
  ...PLAIN_REQUEST,
  model: 'm',
  prompts: ['hi'],
  options: {},
  adapterPath: '/lora.gguf',
};

/** A model whose adapters are loaded one tick later. */
function createFake() {
  const adapters = [{ name: 'modelfile-1', path: '/other.gguf', tenant: null }];
  const loads: string[] = [];
  const model = {
    adapters: () => [...adapters],
    async loadAdapter(path: string, { name }: { name: string }) {
      loads.push(name);
      await Promise.resolve();
      adapters.push({ name, path, tenant: null });
      return { name };
    },
  } as unknown as Model;
  return { model, loads };
}

test('loads the file once, also for requests at the same time, under a name without its path', async () => {
  const { model, loads } = createFake();
  const [first, second] = await Promise.all([withAdapterFile(request, model), withAdapterFile(request, model)]);
  const third = await withAdapterFile(request, model);
  expect([first, second, third].map(({ options }) => options.adapter)).toEqual(Array(3).fill('modelfile-2'));
  expect(loads).toEqual(['modelfile-2']);
});

test('an adapter that the request names wins', async () => {
  const { model, loads } = createFake();
  const named = { ...request, options: { adapter: 'legal' } };
  expect(await withAdapterFile(named, model)).toBe(named);
  expect(loads).toEqual([]);
});

test('another file, a file of one tenant and no file', async () => {
  const { model, loads } = createFake();
  expect((await withAdapterFile({ ...request, adapterPath: '/other.gguf' }, model)).options.adapter).toBe(
    'modelfile-1',
  );
  const { adapterPath: _, ...plain } = request;
  expect(await withAdapterFile(plain, model)).toBe(plain);
  expect(loads).toEqual([]);
  const own = { adapters: () => [{ name: 'own', path: '/lora.gguf', tenant: 'acme' }], loadAdapter: model.loadAdapter };
  expect((await withAdapterFile(request, own as unknown as Model)).options.adapter).toBe('modelfile-1');
});
