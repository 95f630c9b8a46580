import { createNamedFormat } from '../named-calls.ts';

/** Solar Open: id, name and arguments, each after a marker. */
export const solar = createNamedFormat({
  name: 'solar',
  detect: (written, { name }) => written.includes(`<|tool_call:name|>${name}`),
  sections: ['<|tool_calls|>'],
  openers: ['<|tool_call:begin|>'],
  beforeName: { text: '<|tool_call:name|>', isOptional: false },
  nameStops: ['<|tool_call:args|>'],
  closers: ['<|tool_call:end|>'],
  sectionClosers: ['<|calls|>'],
  silent: ['<|end|>', '<|begin|>assistant', '<|content|>'],
  spelling: {
    triggers: ['<|tool_calls|>'],
    begin: '<|tool_calls|>',
    prefix: (name) => `<|tool_call:begin|>call<|tool_call:name|>${name}<|tool_call:args|>`,
    suffix: '<|tool_call:end|>',
    separator: '',
    end: '<|calls|>',
  },
});
