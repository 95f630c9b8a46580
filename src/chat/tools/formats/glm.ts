import { createParameterFormat } from '../parameter-calls.ts';

/** GLM 4.5 and later, Laguna: the name after the tag, then pairs of key and value elements. */
export const glm = createParameterFormat({
  name: 'glm',
  detect: (written, { name }) => new RegExp(`<tool_call>\\s*${name}\\s*<arg_key>`).test(written),
  sections: ['<tool_call>'],
  opener: '',
  nameStops: ['<arg_key>', '</tool_call>'],
  rereadStops: ['<arg_key>', '</tool_call>'],
  keyOpener: '<arg_key>',
  keyStop: '</arg_key>',
  valueOpeners: [{ text: '<arg_value>' }],
  valueStop: '</arg_value>',
  isTrimmed: false,
  closer: '</tool_call>',
  sectionClosers: [],
  isSectionPerCall: true,
  spelling: {
    triggers: ['<tool_call>'],
    begin: '<tool_call>',
    prefix: (name) => `${name}\n`,
    suffix: '</tool_call>',
    separator: '\n<tool_call>',
    end: '',
    parameters: {
      begin: (key) => `<arg_key>${key}</arg_key>\n<arg_value>`,
      separator: '',
      end: () => '</arg_value>\n',
      stop: '</arg_value>',
    },
  },
});
