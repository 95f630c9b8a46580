import { createJsonFormat } from '../json-calls.ts';

/** Apriel: all calls as one JSON list between tags. */
export const toolCallsList = createJsonFormat({
  name: 'tool-calls-list',
  detect: (written) => /<tool_calls>\s*\[/.test(written),
  markers: ['<tool_calls>'],
  nameKeys: ['name'],
  argumentKeys: ['arguments'],
  closers: ['</tool_calls>'],
  spelling: {
    triggers: ['<tool_calls>'],
    begin: '<tool_calls>[',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}',
    separator: ', ',
    end: ']</tool_calls>',
  },
});
