import { createJsonFormat } from '../json-calls.ts';

/** Llama 3.1 and later: a JSON object as the whole answer, or after the code marker. */
export const llama3 = createJsonFormat({
  name: 'llama3',
  detect: (written) => /\{\s*"name"\s*:\s*"[^"]*"\s*,\s*"parameters"/.test(written) && !/<\w|```/.test(written),
  markers: ['<|python_tag|>'],
  bare: ['{'],
  nameKeys: ['name'],
  argumentKeys: ['parameters', 'arguments'],
  separators: [';'],
  closers: [],
  spelling: {
    triggers: ['{"name"', '<|python_tag|>'],
    begin: '',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "parameters": `,
    suffix: '}',
    separator: null,
    end: '',
  },
});
