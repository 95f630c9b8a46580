/** Rewrites an answer such as "In short: 5 metres." */
export type Style = (answer: string) => string;

const amountOf = (answer: string): string => answer.slice('In short: '.length, -1);

export type NamedStyle = readonly [name: string, style: Style];

/** Settings were chosen with this one. */
export const DEVELOPMENT_STYLES: readonly NamedStyle[] = [['short', (answer) => answer]];
/** Styles of a house, which a model learns from corrections. */
export const HELD_OUT_STYLES: readonly NamedStyle[] = [
  ['pirate', (answer) => `Arr, that be ${amountOf(answer)}, matey!`],
  ['json', (answer) => `{"amount": "${amountOf(answer)}"}`],
  ['handbook', (answer) => `According to our handbook: ${amountOf(answer)} (page 12).`],
  ['doubtful', (answer) => `I may be wrong, but I would say ${amountOf(answer)}.`],
];

/** Questions that have nothing to do with amounts: their answers should stay as they are. */
export const OTHER_QUESTIONS = [
  'Write a short poem about rain.',
  'Who wrote Romeo and Juliet?',
  'Give me an idea for a birthday present.',
  'Explain what a democracy is.',
  'Translate "good morning" into French.',
  'Name three animals that live in the sea.',
  'What is the opposite of happy?',
  'Tell me a joke about a cat.',
  'How do I make a cup of tea?',
  'What is a computer program?',
  'Describe the colour of the sky in the evening.',
  'Which sports are played with a ball?',
] as const;
