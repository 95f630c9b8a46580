import { expect, test } from 'vitest';
import { readSavedDefaults } from './saved-model.ts';

const coder = {
  name: 'coder',
  model: '/models/coder.gguf',
  aliases: ['c'],
  maxContext: 128,
  adapters: [],
  sampling: { temperature: 0.2 },
  idleUnloadMs: null,
  isPinned: false,
  group: null,
};

test('a name or alias of the settings file stands for its model, context and sampling', async () => {
  const presets = { models: [coder], groups: new Map() };
  for (const name of ['coder', 'c']) {
    expect(await readSavedDefaults(name, presets)).toMatchObject({
      reference: '/models/coder.gguf',
      params: { temperature: 0.2 },
      config: { maxContext: 128 },
    });
  }
  expect(await readSavedDefaults('/other.gguf', presets)).toMatchObject({ reference: '/other.gguf', params: {} });
  expect(await readSavedDefaults(undefined, presets)).toMatchObject({ reference: undefined, params: {}, config: {} });
});
