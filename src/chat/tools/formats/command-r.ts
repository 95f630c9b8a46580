import { createJsonFormat } from '../json-calls.ts';

/** Command R+: a fenced JSON list after the word Action. */
export const commandR = createJsonFormat({
  name: 'command-r',
  detect: (written) => /Action:\s*```json\s*\[/.test(written),
  markers: ['Action:\n```json', 'Action: ```json'],
  nameKeys: ['tool_name', 'name'],
  argumentKeys: ['parameters', 'arguments'],
  closers: ['```'],
  spelling: {
    triggers: ['Action:'],
    begin: 'Action:\n```json\n[\n',
    prefix: (name) => `    {\n        "tool_name": ${JSON.stringify(name)},\n        "parameters": `,
    suffix: '\n    }',
    separator: ',\n',
    end: '\n]```',
  },
});
