import { createNamedFormat } from '../named-calls.ts';

/** Mistral v11 tokenizers and later: marker, name, second marker, arguments. */
export const mistralNamed = createNamedFormat({
  name: 'mistral-named',
  detect: (written, { name }) => written.includes(`[TOOL_CALLS]${name}[ARGS]`),
  openers: ['[TOOL_CALLS]'],
  nameStops: ['[ARGS]'],
  closers: [],
  spelling: {
    triggers: ['[TOOL_CALLS]'],
    begin: '[TOOL_CALLS]',
    prefix: (name) => `${name}[ARGS]`,
    suffix: '',
    separator: '[TOOL_CALLS]',
    end: '',
  },
});
