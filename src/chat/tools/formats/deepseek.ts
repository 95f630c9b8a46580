import { createNamedFormat } from '../named-calls.ts';

const [BEGIN, END] = ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'];
const [OPEN, SEPARATOR, CLOSE] = ['<｜tool▁call▁begin｜>', '<｜tool▁sep｜>', '<｜tool▁call▁end｜>'];

/** DeepSeek V3 and R1: a type, the name, and the arguments in a code fence. */
export const deepseek = createNamedFormat({
  name: 'deepseek',
  detect: (written, { name }) => written.includes(`${SEPARATOR}${name}\n\`\`\`json`),
  sections: [BEGIN],
  openers: [OPEN],
  beforeName: { text: SEPARATOR, isOptional: false },
  nameStops: ['\n```json\n'],
  closers: [`\`\`\`${CLOSE}`, `\`\`\`\n${CLOSE}`, '```', CLOSE],
  sectionClosers: [END],
  silent: [CLOSE],
  spelling: {
    triggers: [BEGIN],
    begin: BEGIN,
    prefix: (name) => `${OPEN}function${SEPARATOR}${name}\n\`\`\`json\n`,
    suffix: `\n\`\`\`${CLOSE}`,
    separator: '\n',
    end: END,
  },
});

/** DeepSeek V3.1: the name, then the arguments without fence. */
export const deepseek31 = createNamedFormat({
  name: 'deepseek-3.1',
  detect: (written, { name }) => written.includes(`${OPEN}${name}${SEPARATOR}{`),
  sections: [BEGIN],
  openers: [OPEN],
  nameStops: [SEPARATOR],
  closers: [CLOSE],
  sectionClosers: [END],
  spelling: {
    triggers: [BEGIN],
    begin: BEGIN,
    prefix: (name) => `${OPEN}${name}${SEPARATOR}`,
    suffix: CLOSE,
    separator: '',
    end: END,
  },
});
