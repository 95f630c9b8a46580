import { createJsonFormat } from '../json-calls.ts';

const [OPEN, CLOSE] = ['<|tool_call_start|>', '<|tool_call_end|>'];

/** LFM2, asked for JSON: a list between its markers. Its template shows tools and results, but no calls. */
export const lfm2 = createJsonFormat({
  name: 'lfm2',
  detect: () => false,
  markers: [OPEN],
  bare: ['[', '{'],
  nameKeys: ['name'],
  argumentKeys: ['arguments', 'parameters'],
  closers: [CLOSE],
  silent: [CLOSE],
  write: (calls) =>
    `${OPEN}[${calls.map((call) => `{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments}}`).join(', ')}]${CLOSE}`,
  spelling: {
    triggers: [OPEN],
    begin: `${OPEN}[`,
    prefix: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
    suffix: '}',
    separator: ', ',
    end: `]${CLOSE}`,
  },
});
