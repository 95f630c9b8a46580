import { createNamedFormat } from '../named-calls.ts';

/** Functionary v3.1: a tag with the name, arguments inside. */
export const functionary31 = createNamedFormat({
  name: 'functionary-3.1',
  detect: (written, { name }) => new RegExp(`<function=${name}>\\s*\\{`).test(written),
  openers: ['<function='],
  nameStops: ['>'],
  closers: ['</function>'],
  spelling: {
    triggers: ['<function='],
    begin: '<function=',
    prefix: (name) => `${name}>`,
    suffix: '</function>',
    separator: '<function=',
    end: '',
  },
});
