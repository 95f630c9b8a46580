import { createParameterFormat } from '../parameter-calls.ts';

const TAG = '｜DSML｜';

/** DeepSeek V3.2 and V4: elements whose attributes hold the names and mark string values. */
const createDsml = (name: string, section: string) =>
  createParameterFormat({
    name,
    detect: (written) => written.includes(`<${TAG}${section}>`),
    sections: [`<${TAG}${section}>`],
    opener: `<${TAG}invoke name="`,
    nameStops: ['">'],
    keyOpener: `<${TAG}parameter name="`,
    keyStop: '"',
    valueOpeners: [
      { text: ' string="true">', isString: true },
      { text: 'string="true">', isString: true },
      { text: ' string="false">', isString: false },
      { text: 'string="false">', isString: false },
    ],
    valueStop: `</${TAG}parameter>`,
    isTrimmed: false,
    closer: `</${TAG}invoke>`,
    sectionClosers: [`</${TAG}${section}>`],
    isSectionPerCall: false,
    spelling: {
      triggers: [`<${TAG}${section}>`],
      begin: `<${TAG}${section}>\n`,
      prefix: (tool) => `<${TAG}invoke name="${tool}">\n`,
      suffix: `</${TAG}invoke>\n`,
      separator: '',
      end: `</${TAG}${section}>`,
      parameters: {
        begin: (key, isRaw) => `<${TAG}parameter name="${key}" string="${isRaw}">`,
        separator: '',
        end: () => `</${TAG}parameter>\n`,
        stop: `</${TAG}parameter>`,
      },
    },
  });

export const deepseek32 = createDsml('deepseek-3.2', 'function_calls');
export const deepseek4 = createDsml('deepseek-4', 'tool_calls');
