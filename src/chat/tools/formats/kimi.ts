import { createNamedFormat } from '../named-calls.ts';

/** Kimi K2: the name is part of an id that counts the calls. */
export const kimi = createNamedFormat({
  name: 'kimi',
  detect: (written) => written.includes('<|tool_call_begin|>') && written.includes('<|tool_call_argument_begin|>'),
  sections: ['<|tool_calls_section_begin|>'],
  openers: ['<|tool_call_begin|>'],
  nameStops: ['<|tool_call_argument_begin|>'],
  cleanName: (text) => /^(?:functions\.)?(.*?)(?::\d+)?$/s.exec(text.trim())?.[1] ?? null,
  closers: ['<|tool_call_end|>'],
  sectionClosers: ['<|tool_calls_section_end|>'],
  callId: (name, index) => `functions.${name}:${index}`,
  spelling: {
    triggers: ['<|tool_calls_section_begin|>'],
    begin: '<|tool_calls_section_begin|>',
    // The first call of a turn is 0; later ones are accepted with any number.
    prefix: (name) => `<|tool_call_begin|>functions.${name}:0<|tool_call_argument_begin|>`,
    suffix: '<|tool_call_end|>',
    separator: '',
    end: '<|tool_calls_section_end|>',
  },
});
