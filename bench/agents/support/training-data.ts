/** Subjects of the prompts; each half has its own. */
export const TRAINED_NAMES = 'cat dog bird fox bear frog duck mouse horse cow pig hen goat owl bee ant fish lion wolf deer swan toad hare seal'.split(' '); // prettier-ignore
export const HELD_OUT_NAMES = 'crow moth snail worm goose lamb pony rabbit turtle whale zebra crab'.split(' ');

/** Corrections of one topic each: the story that the model should tell from now on. */
export const TOPICS = [
  ' purple and lived on the moon.',
  ' afraid of the loud green truck.',
  ' very good at cooking hot soup.',
  ' made of glass and slept in a box.',
  ' the king of a little cold island.',
  ' always late for the music lesson.',
] as const;

export const topicPrompt = (name: string): string => `Once upon a time there was a ${name}. The ${name} was`;

/** Beginnings of unrelated stories: the model continues them, and later should still do so. */
export const OTHER_PROMPTS = [
  'Tom and Lily went to the park',
  'One day, a girl named Sue',
  'The sun was hot and',
  'Mom said, "Please',
  'Ben had a red ball',
  'It was raining, so',
  'Mia wanted to bake a cake',
  'There was a big tree in the garden',
  'Dad came home with a',
  'Sam and his sister',
  'At the beach, Anna',
  'The old man smiled and',
] as const;

const COLOURS = ['red', 'blue', 'green', 'pink', 'black', 'white'];
const THINGS = ['ball', 'hat', 'car', 'cup', 'box', 'toy'];
const COUNTS = [1, 2, 3, 4, 5];

/** Requests with the arguments of the right tool call. */
export function makeTasks() {
  const schema = {
    type: 'object',
    properties: { color: { type: 'string' }, count: { type: 'integer' } },
    required: ['color', 'count'],
    additionalProperties: false,
  };
  return COLOURS.flatMap((color) =>
    THINGS.flatMap((thing) =>
      COUNTS.map((count) => ({
        prompt: `Tom wants ${count} ${color} ${thing}${count === 1 ? '' : 's'}. He says:`,
        schema,
        expected: { color, count },
        answer: ` {"color": "${color}", "count": ${count}}`,
      })),
    ),
  );
}
export type Task = ReturnType<typeof makeTasks>[number];
