import { expect, test } from 'vitest';
import { readEmbedderWish } from './embedder-flag.ts';

const read = (typed?: string, variable?: string) =>
  readEmbedderWish({
    values: typed === undefined ? {} : { '--memory-embedder': typed },
    io: { environment: variable === undefined ? {} : { RUVLLM_MEMORY_EMBEDDER: variable } } as never,
  });

test('the flag goes before the variable, an empty variable is none', () => {
  expect(read()).toEqual({ embedder: 'static', reference: null, isGiven: false });
  expect(read(undefined, '')).toEqual({ embedder: 'static', reference: null, isGiven: false });
  expect(read('static', 'model')).toEqual({ embedder: 'static', reference: null, isGiven: true });
  expect(read(undefined, 'model')).toEqual({ embedder: 'model', reference: null, isGiven: true });
});

test.each(['minilm.gguf', './minilm', 'owner/minilm', 'owner/minilm:q8_0', 'C:\\minilm', 'npm:minilm@1.0.0'])(
  '%s is a model that is run',
  (reference) => expect(read(reference)).toEqual({ embedder: 'model', reference, isGiven: true }),
);

test.each(['', 'Static', 'statik', 'models'])('%j is refused, by the name it was given under', (text) => {
  expect(() => read(text)).toThrow(/^--memory-embedder must be static, model or/);
  if (text !== '') expect(() => read(undefined, text)).toThrow(/^RUVLLM_MEMORY_EMBEDDER must be/);
});
