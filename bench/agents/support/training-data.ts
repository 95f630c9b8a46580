/** Subjects of the prompts; each half has its own. */
export const TRAINED_NAMES = 'cat dog bird fox bear frog duck mouse horse cow pig hen goat owl bee ant fish lion wolf deer swan toad hare seal'.split(' '); // prettier-ignore
export const HELD_OUT_NAMES = 'crow moth snail worm goose lamb pony rabbit turtle whale zebra crab'.split(' ');

export const topicPrompt = (name: string): string => `Once upon a time there was a ${name}. The ${name} was`;

/** Endings that people liked, each with one that they disliked; each half has its own words. */
export const TRAINED_ENDINGS: readonly (readonly [liked: string, disliked: string])[] = [
  [' very kind and happy.', ' very mean and angry.'],
  [' good and full of joy.', ' bad and full of fear.'],
  [' nice and loved to play.', ' sad and did not play.'],
  [' friendly and had many friends.', ' lonely and had no friends.'],
  [' happy to see the sun.', ' afraid of the dark.'],
  [' smart and helped the others.', ' greedy and pushed the others.'],
  [' brave and saved the day.', ' scared and ran away.'],
  [' glad to share the food.', ' selfish and took the food.'],
  [' smiling all day long.', ' crying all day long.'],
  [' warm and safe at home.', ' cold and lost in the rain.'],
  [' proud of the new house.', ' angry at the old house.'],
  [' gentle with the baby.', ' rough with the baby.'],
];
export const HELD_OUT_ENDINGS: typeof TRAINED_ENDINGS = [
  [' cheerful and sang a song.', ' grumpy and broke a toy.'],
  [' polite and said thank you.', ' rude and said go away.'],
  [' excited to go to the park.', ' tired and hurt in the park.'],
  [' sweet and gave a big hug.', ' cruel and gave a hard kick.'],
  [' calm and slept well.', ' upset and could not sleep.'],
  [' healthy and strong.', ' sick and weak.'],
  [' pretty and everyone liked it.', ' ugly and everyone hated it.'],
  [' careful and did not fall.', ' careless and fell down.'],
  [' loved by the whole family.', ' feared by the whole family.'],
  [' clean and smelled good.', ' dirty and smelled bad.'],
  [' honest and told the truth.', ' naughty and told a lie.'],
  [' lucky and found a gift.', ' unlucky and lost a gift.'],
];

const TRAINED_ORDERS = [
  ['red', 'blue', 'green', 'yellow', 'pink', 'black'],
  ['ball', 'hat', 'car', 'cup', 'box', 'toy', 'doll', 'book'],
] as const;
const HELD_OUT_ORDERS = [
  ['white', 'purple', 'orange', 'brown', 'golden', 'silver'],
  ['kite', 'cake', 'shirt', 'truck', 'drum', 'boat', 'bear', 'chair'],
] as const;
/** Words that an order can name. */
const NAMED = new Set<string>([...TRAINED_ORDERS, ...HELD_OUT_ORDERS].flat());

/** Stories in which somebody wants two things; each half has its own words. */
export function makeOrders(part: 'train' | 'heldOut') {
  const [colours, things] = part === 'train' ? TRAINED_ORDERS : HELD_OUT_ORDERS;
  return colours.flatMap((colour, c) =>
    things.map((thing, t) => {
      // The same pair of colours meets other pairs of things.
      const step = 1 + ((c + t) % (colours.length - 1));
      const other = [colours[(c + step) % colours.length], things[(t + 3) % things.length]];
      const expected = { first: `${colour} ${thing}`, second: other.join(' ') };
      const { first, second } = expected;
      return {
        prompt: `Tom went to the shop. He wanted a ${first} and a ${second}. He said, "Can I have`,
        schema: { type: 'object' },
        expected,
      };
    }),
  );
}

const namedIn = (text: string): readonly string[] => text.toLowerCase().split(/[^a-z]+/).filter((word) => NAMED.has(word)); // prettier-ignore

/**
 * Colours and things that are both in the order and in what is said before the closing quote, of those in either: a list of every word earns
 * little.
 */
export function orderReward(text: string, expected: Readonly<Record<string, unknown>>): number {
  const ordered = new Set(namedIn(Object.values(expected).join(' ')));
  const said = new Set(namedIn(text.split('"')[0]!));
  return [...said].filter((word) => ordered.has(word)).length / new Set([...said, ...ordered]).size;
}
