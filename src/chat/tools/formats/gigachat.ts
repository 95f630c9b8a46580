import { createJsonFormat } from '../json-calls.ts';

/** GigaChat 3: a separate turn that is one JSON object. */
export const gigachat = createJsonFormat({
  name: 'gigachat',
  detect: (written) => /function call<\|role_sep\|>\s*\{/.test(written),
  markers: ['function call<|role_sep|>', '<|message_sep|>\n\nfunction call<|role_sep|>'],
  nameKeys: ['name'],
  argumentKeys: ['arguments'],
  closers: ['<|message_sep|>'],
  spelling: {
    triggers: ['function call<|role_sep|>'],
    begin: 'function call<|role_sep|>\n',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}',
    separator: null,
    end: '',
  },
});
