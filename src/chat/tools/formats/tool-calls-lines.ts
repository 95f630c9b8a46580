import { createJsonFormat } from '../json-calls.ts';

/** MiniMax M1: one JSON object per line, between one pair of tags. */
export const toolCallsLines = createJsonFormat({
  name: 'tool-calls-lines',
  detect: (written) => /<tool_calls>\s*\{/.test(written),
  markers: ['<tool_calls>'],
  nameKeys: ['name'],
  argumentKeys: ['arguments'],
  closers: ['</tool_calls>'],
  spelling: {
    triggers: ['<tool_calls>'],
    begin: '<tool_calls>\n',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}\n',
    separator: '',
    end: '</tool_calls>',
  },
});
