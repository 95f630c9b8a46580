import { ELSEWHERE, FACTS } from '../learn/facts-data.ts';

/** Paragraphs of our own, to be copied with a small change. */
const PARAGRAPHS = [
  'The harbour master keeps a log of every ship that enters the bay. Each entry has the name of the ship, the flag it sails under, the cargo it carries and the hour of its arrival. On stormy days the log is short, because few captains dare to pass the reef.',
  'Our office moves to the third floor on Monday. Please pack your desk by Friday noon and label every box with your name and the number of your new room. The movers collect the boxes on Saturday. Screens and chairs stay where they are until Monday morning.',
  'To make the soup, cut two onions and four carrots into small pieces. Fry the onions in butter until they are golden, add the carrots and a litre of water, and let it cook for half an hour. Add salt, pepper and a spoon of cream before you serve the soup.',
  'The library opens at nine in the morning and closes at eight in the evening. On Sundays it is closed. Members can borrow ten books for four weeks. A book that comes back late costs ten cents a day. The reading room has forty seats and a view of the river.',
];

const CODE = [
  'function addAll(values) {\n  let total = 0;\n  for (const value of values) {\n    total += value;\n  }\n  return total;\n}\n\nfunction average(values) {\n  return addAll(values) / values.length;\n}',
  'class Counter {\n  constructor(start) {\n    this.count = start;\n  }\n\n  increase(step) {\n    this.count += step;\n    return this.count;\n  }\n\n  reset() {\n    this.count = 0;\n  }\n}',
];

/** Edits that repeat most of their input. */
export const EDITS: readonly { readonly prompt: string; readonly prediction: string }[] = [
  ...PARAGRAPHS.map((text) => ({ prompt: `Repeat the following text word for word:\n\n${text}`, prediction: text })),
  ...CODE.map((text) => ({
    prompt: `Here is some code:\n\n${text}\n\nWrite the same code again without any change.`,
    prediction: text,
  })),
];

/** Questions that users of one tenant ask again and again. */
export const QUESTIONS: readonly string[] = [...FACTS.map(({ question }) => question), ...ELSEWHERE];

const text = { type: 'string', maxLength: 24 } as const;
const person = {
  type: 'object',
  properties: {
    first_name: text,
    last_name: text,
    occupation: text,
    home_town: text,
    year_of_birth: { type: 'integer', minimum: 1900, maximum: 2020 },
    is_member: { type: 'boolean' },
    preferred_contact: { enum: ['email', 'telephone', 'letter'] },
  },
  required: ['first_name', 'last_name', 'occupation', 'home_town', 'year_of_birth', 'is_member', 'preferred_contact'],
  additionalProperties: false,
};
const ticket = {
  type: 'object',
  properties: {
    category: { enum: ['hardware', 'software', 'network', 'account'] },
    priority: { enum: ['low', 'normal', 'high'] },
    short_description: { type: 'string', maxLength: 40 },
    affected_department: text,
    requires_callback: { type: 'boolean' },
    estimated_minutes: { type: 'integer', minimum: 1, maximum: 600 },
  },
  required: ['category', 'priority', 'short_description', 'affected_department', 'requires_callback', 'estimated_minutes'], // prettier-ignore
  additionalProperties: false,
};

/** Answers under a schema, as programs ask for them. */
export const FORMS: readonly { readonly prompt: string; readonly schema: object }[] = [
  { prompt: 'Describe a librarian from Leeds as JSON.', schema: person },
  { prompt: 'Describe a baker from Porto as JSON.', schema: person },
  { prompt: 'Describe a retired pilot from Oslo as JSON.', schema: person },
  { prompt: 'The printer in the sales office is on fire. Write the ticket as JSON.', schema: ticket },
  { prompt: 'Nobody in accounting can log in since this morning. Write the ticket as JSON.', schema: ticket },
  { prompt: 'The video call freezes every ten minutes. Write the ticket as JSON.', schema: ticket },
];

/** Starts of texts without repetition. */
export const STORIES: readonly string[] = [
  'The first thing she noticed about the island was',
  'In a distant galaxy, far beyond the reach of',
  'The recipe that my grandmother never wrote down',
  'List of strange words and what they could mean:',
  'Dear editor, I disagree with your article about',
  'The train left the station at midnight, and',
];

/** Starts of tales for children: the only texts that a model of 15 million parameters knows. */
export const TALES: readonly string[] = [
  'Once upon a time, there was a little girl named Lily. She loved to play outside in the',
  'Once upon a time, there was a big dog named Max. One day, Max went to the park and',
  'Tom and Sam were friends. They liked to play with their toys. One day, they found a',
  'One day, a small bird saw a red ball in the garden. The bird wanted to',
];
