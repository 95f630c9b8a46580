import { createJsonFormat } from '../json-calls.ts';

/** Mistral v3 to v7 tokenizers: a JSON list after one marker, to the end of the turn. */
export const mistral = createJsonFormat({
  name: 'mistral',
  detect: (written) => /\[TOOL_CALLS\]\s*\[\s*\{/.test(written),
  markers: ['[TOOL_CALLS]'],
  nameKeys: ['name'],
  argumentKeys: ['arguments'],
  closers: [],
  spelling: {
    triggers: ['[TOOL_CALLS]'],
    begin: '[TOOL_CALLS][',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}',
    separator: ', ',
    end: ']',
  },
});
