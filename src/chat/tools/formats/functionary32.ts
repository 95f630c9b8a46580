import { createNamedFormat } from '../named-calls.ts';

/** Functionary v3.2: a line with the recipient (`all` for the user); the prompt ends with the first marker. */
export const functionary32 = createNamedFormat({
  name: 'functionary-3.2',
  detect: (written, { name }) => written.includes(`>>>${name}\n{`),
  openers: ['>>>'],
  startTriggers: [''],
  nameStops: ['\n'],
  closers: [],
  silent: ['>>>all\n'],
  startSilent: ['all\n'],
  spelling: {
    triggers: ['>>>'],
    begin: '',
    prefix: (name) => `${name}\n`,
    suffix: '',
    separator: '>>>',
    end: '',
  },
});
