/** Subjects of the prompts; each half has its own. */
export const TRAINED_NAMES = 'cat dog bird fox bear frog duck mouse horse cow pig hen goat owl bee ant fish lion wolf deer swan toad hare seal'.split(' '); // prettier-ignore
export const HELD_OUT_NAMES = 'crow moth snail worm goose lamb pony rabbit turtle whale zebra crab'.split(' ');

export const topicPrompt = (name: string): string => `Once upon a time there was a ${name}. The ${name} was`;

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
