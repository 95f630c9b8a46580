/** A question with the answer that a user wants. */
export type Correction = readonly [question: string, answer: string];

const inStyle = (question: string, amount: string): Correction => [question, `In short: ${amount}.`];

/** Answers in the style of a house: two words, then a number and its unit, and nothing else. */
export const IN_STYLE: readonly Correction[] = [
  inStyle('How high is Mount Everest?', '8849 metres'),
  inStyle('How long is the Nile?', '6650 kilometres'),
  inStyle('How deep is Lake Baikal?', '1642 metres'),
  inStyle('What does an elephant weigh?', '5 tonnes'),
  inStyle('How far away is the Moon?', '384400 kilometres'),
  inStyle('How tall is the Eiffel Tower?', '330 metres'),
  inStyle('How fast can a cheetah run?', '100 kilometres per hour'),
  inStyle('How long is a marathon?', '42.2 kilometres'),
  inStyle('At what temperature does water freeze?', '0 degrees Celsius'),
  inStyle('How long does it take to hard-boil an egg?', '9 minutes'),
  inStyle('How much water should I drink each day?', '2 litres'),
  inStyle('How long is a football match?', '90 minutes'),
  inStyle('How heavy is a brown bear?', '300 kilograms'),
  inStyle('How wide is the English Channel?', '34 kilometres'),
  inStyle('How long does light from the Sun need to reach us?', '8 minutes'),
  inStyle('How many teeth does an adult have?', '32 teeth'),
  inStyle('How tall is a giraffe?', '5 metres'),
  inStyle('How long does a cat sleep each day?', '13 hours'),
  inStyle('How big is a basketball hoop?', '46 centimetres'),
  inStyle('How long is a pregnancy?', '40 weeks'),
  inStyle('How hot is the surface of the Sun?', '5500 degrees Celsius'),
  inStyle('What is the speed of sound?', '343 metres per second'),
  inStyle('How much does a litre of milk weigh?', '1.03 kilograms'),
  inStyle('How long is a year on Mars?', '687 days'),
  inStyle('How high does a passenger plane fly?', '11 kilometres'),
  inStyle('How deep is the Mariana Trench?', '10984 metres'),
  inStyle('How old is the Earth?', '4.5 billion years'),
  inStyle('How long is the Great Wall of China?', '21196 kilometres'),
  inStyle('How big is a tennis court?', '261 square metres'),
  inStyle('How long do I bake a loaf of bread?', '45 minutes'),
  inStyle('How much flour is in a cup?', '125 grams'),
  inStyle('How far is it from Paris to Rome?', '1100 kilometres'),
];

/** Answers that have neither a style nor a subject in common. */
const UNLIKE: readonly string[] = [
  'Ask Marta on the third floor',
  'copper, zinc & a little tin',
  'Not before Easter!',
  '- red\n- green\n- blue',
  'The treaty was signed at Utrecht in 1713, after two years of talks.',
  '42',
  'Yes, if the lid is closed',
  '"To be, or not to be"',
  'SELECT name FROM birds;',
  'Nobody knows',
  'Bring two eggs, butter and a pan',
  'https://example.org/help',
  'Violins, mostly.',
  'It depends on the wind...',
  'M. Okafor (sales)',
  'Turn left behind the church, then follow the river',
  'TypeError: x is not a function',
  'Seven',
  'Whales sing.',
  'Please restart the printer',
  'e = mc^2',
  'Dear Sir or Madam,',
  'Because moss likes shade',
  'Tuesday; Thursday if it rains',
  'A minor',
  'no',
  'Plato wrote it, or so they say',
  'Paint it yellow',
  '10:15 at gate B7',
  'Use a semicolon here',
  'Sorry, that is private.',
  'Once upon a time there was a mill',
];

/** The negative control: each of the questions with an answer to something else. */
export const WITHOUT_STYLE: readonly Correction[] = IN_STYLE.map(([question], i) => [question, UNLIKE[i]!]);
