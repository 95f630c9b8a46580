import { createNamedFormat } from '../named-calls.ts';

/** gpt-oss (Harmony): a message on the commentary channel addressed to a function. */
export const gptOss = createNamedFormat({
  name: 'gpt-oss',
  detect: (written, { name }) => written.includes(`to=functions.${name}`) && written.includes('<|channel|>'),
  openers: [
    '<|start|>assistant to=functions.',
    '<|start|>assistant<|channel|>commentary to=functions.',
    '<|channel|>commentary to=functions.',
    '<|channel|>analysis to=functions.',
  ],
  startTriggers: ['to=functions.'],
  nameStops: ['<|channel|>', ' ', '<|constrain|>', '<|message|>'],
  beforeArguments: '<|message|>',
  closers: ['<|call|>'],
  silent: [
    '<|start|>assistant',
    '<|channel|>final<|message|>',
    '<|channel|>commentary<|message|>',
    '<|end|>',
    '<|return|>',
    '<|call|>',
  ],
  spelling: {
    triggers: ['<|channel|>commentary to=functions.'],
    begin: '<|channel|>commentary to=functions.',
    prefix: (name) => `${name} <|constrain|>json<|message|>`,
    suffix: '<|call|>',
    separator: null,
    end: '',
  },
});
