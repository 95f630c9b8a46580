import { createParameterFormat } from '../parameter-calls.ts';

/** Qwen3-Coder and 3.5, Nemotron 3, Step 3.5: elements named by function and parameter, values on separate lines. */
export const qwenCoder = createParameterFormat({
  name: 'qwen-coder',
  detect: (written) => /<tool_call>\s*<function=/.test(written),
  sections: ['<tool_call>'],
  opener: '<function=',
  nameStops: ['>'],
  keyOpener: '<parameter=',
  keyStop: '>',
  valueOpeners: [],
  valueStop: '</parameter>',
  isTrimmed: true,
  closer: '</function>',
  sectionClosers: ['</tool_call>'],
  isSectionPerCall: true,
  spelling: {
    triggers: ['<tool_call>'],
    begin: '<tool_call>\n',
    prefix: (name) => `<function=${name}>\n`,
    suffix: '</function>\n</tool_call>',
    separator: '\n<tool_call>\n',
    end: '',
    parameters: {
      begin: (key) => `<parameter=${key}>\n`,
      separator: '',
      end: () => '\n</parameter>\n',
      stop: '</parameter>',
    },
  },
});
