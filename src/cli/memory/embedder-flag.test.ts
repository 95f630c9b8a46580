import { expect, test } from 'vitest';
import { readEmbedderChoice } from './embedder-flag.ts';

const read = (flag?: string, variable?: string) =>
  readEmbedderChoice({
    values: flag === undefined ? {} : { '--memory-embedder': flag },
    io: { environment: variable === undefined ? {} : { RUVLLM_MEMORY_EMBEDDER: variable } } as never,
  });

test('the flag takes precedence over the variable; an empty variable counts as unset', () => {
  expect(read()).toEqual({ embedder: 'encoder', reference: null, isExplicit: false });
  expect(read(undefined, '')).toEqual({ embedder: 'encoder', reference: null, isExplicit: false });
  expect(read('static', 'model')).toEqual({ embedder: 'static', reference: null, isExplicit: true });
  expect(read(undefined, 'model')).toEqual({ embedder: 'model', reference: null, isExplicit: true });
});

test.each(['minilm.gguf', './minilm', 'owner/minilm', 'owner/minilm:q8_0', 'C:\\minilm', 'npm:minilm@1.0.0'])(
  'reads %s as a model to run',
  (reference) => expect(read(reference)).toEqual({ embedder: 'model', reference, isExplicit: true }),
);

test.each(['', 'Static', 'statik', 'models'])('rejects %j, naming the flag or variable', (text) => {
  expect(() => read(text)).toThrow(/^--memory-embedder must be encoder, static, model or/);
  if (text !== '') expect(() => read(undefined, text)).toThrow(/^RUVLLM_MEMORY_EMBEDDER must be/);
});
