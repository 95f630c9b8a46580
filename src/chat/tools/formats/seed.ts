import { createParameterFormat } from '../parameter-calls.ts';

/** Seed-OSS: like Qwen3-Coder, with other tags and values on one line. */
export const seed = createParameterFormat({
  name: 'seed',
  detect: (written) => written.includes('<seed:tool_call>'),
  sections: ['<seed:tool_call>'],
  opener: '<function=',
  nameStops: ['>'],
  keyOpener: '<parameter=',
  keyStop: '>',
  valueOpeners: [],
  valueStop: '</parameter>',
  isTrimmed: false,
  closer: '</function>',
  sectionClosers: ['</seed:tool_call>'],
  isSectionPerCall: true,
  spelling: {
    triggers: ['<seed:tool_call>'],
    begin: '<seed:tool_call>\n',
    prefix: (name) => `<function=${name}>\n`,
    suffix: '</function>\n</seed:tool_call>',
    separator: '\n<seed:tool_call>\n',
    end: '',
    parameters: {
      begin: (key) => `<parameter=${key}>`,
      separator: '',
      end: () => '</parameter>\n',
      stop: '</parameter>',
    },
  },
});
