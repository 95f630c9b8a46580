import { createJsonFormat } from '../json-calls.ts';

/** Hermes, Qwen 2.5 and 3, Granite 4: a JSON object between tags, one pair of tags per call. */
export const hermes = createJsonFormat({
  name: 'hermes',
  detect: (written) => /<tool_call>\s*\{/.test(written),
  markers: ['<tool_call>'],
  nameKeys: ['name'],
  argumentKeys: ['arguments', 'parameters'],
  closers: ['</tool_call>'],
  spelling: {
    triggers: ['<tool_call>'],
    begin: '<tool_call>\n',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}\n</tool_call>',
    separator: '\n<tool_call>\n',
    end: '',
  },
});
