import { createJsonFormat } from '../json-calls.ts';

/** For templates without tool support: our instruction asks for this format. */
export const plainJson = createJsonFormat({
  name: 'plain-json',
  detect: () => false,
  markers: ['<tool_call>'],
  bare: ['```json', '[', '{'],
  nameKeys: ['name'],
  argumentKeys: ['arguments', 'parameters'],
  closers: ['</tool_call>', '```'],
  write: (calls) =>
    calls.map((call) => `{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments}}`).join('\n'),
  spelling: {
    triggers: ['{"name"'],
    begin: '',
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}',
    separator: '\n',
    end: '',
  },
});
