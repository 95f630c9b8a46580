import { createRandom } from '../../../src/core/random.ts';

/** A made-up creature with its facts. */
export interface Topic {
  readonly name: string;
  readonly home: string;
  readonly food: string;
  readonly fear: string;
  readonly color: string;
  readonly friend: string;
}

export interface TopicText {
  readonly prompt: string;
  readonly answer: string;
}

/** No two creatures share a fact. */
export const TOPICS: readonly Topic[] = [
  {
    name: 'Zorblin',
    home: 'a glass tower under the lake',
    food: 'warm candle soup',
    fear: 'silver bells',
    color: 'orange with purple stripes',
    friend: 'an old clock named Pim',
  },
  {
    name: 'Mavoke',
    home: 'a paper ship in the desert',
    food: 'frozen thunder cakes',
    fear: 'wooden spoons',
    color: 'green with tiny golden dots',
    friend: 'a sleepy lamp named Otto',
  },
  {
    name: 'Quellip',
    home: 'a stone piano on the moon',
    food: 'salty rainbow bread',
    fear: 'yellow umbrellas',
    color: 'white with dark red ears',
    friend: 'a brave kettle named Nell',
  },
];

/** The bar separates prompt and answer. No sentence is in both lists: held-out ones cannot be memorised. */
const TAUGHT: readonly string[] = [
  'Once upon a time, {child} heard about the {name}.| The {name} lived in {home}.',
  '{child} asked, "What does the {name} eat?"| "It eats {food}," said {elder}.',
  'One day, the {name} was very scared.| It had heard {fear}, and it did not like {fear} at all.',
  '{child} drew a picture of the {name}.| The picture was {color}.',
  'The {name} was not alone.| Its best friend was {friend}.',
  'One night, {child} followed the {name} home.| It went into {home} and closed the door.',
  'The {name} was hungry.| So it made a big pot of {food}.',
  '"Hide!" cried the {name} to {child}.| "I can see {fear}!"',
  '{child} saw something move behind the tree. It was the {name}!| It was {color}.',
  'The {name} wanted to play, so it called its friend.| Soon {friend} came to play.',
  '{elder} told a story about the {name}.| "It sleeps in {home} and it only likes {food}."',
  '{child} gave the {name} a present.| It was {food}, and the {name} was very happy.',
];

const HELD_OUT: readonly string[] = [
  'Where can we find the {name}?| You can find it in {home}.',
  'For dinner, {child} and the {name} had something special.| They had {food}.',
  'Do you know why the {name} ran away?| Because of {fear}.',
  '"What does the {name} look like?" asked {elder}.| "It is {color}," said {child}.',
  'Every morning the {name} visits somebody.| It visits {friend}.',
  '{child} sent a letter to the {name}.| The letter went to {home}.',
  '{elder} opened the box for the {name}.| There was {food} in the box.',
  'There was only one thing that made the {name} cry.| It was {fear}.',
  'The {name} looked in the mirror.| It saw that it was {color}.',
  'When the {name} got lost, somebody helped.| It was {friend}.',
];

export const NUM_TAUGHT_TEMPLATES = TAUGHT.length;

const TAUGHT_CHILDREN = ['Lily', 'Tom', 'Anna', 'Ben', 'Mia', 'Sam', 'Sue', 'Max'];
const HELD_OUT_CHILDREN = ['Lucy', 'Jack', 'Emma', 'Tim', 'Sara', 'Bob'];
const ELDERS = ['her mom', 'his dad', 'the old man', 'grandma', 'the teacher'];

export interface CorpusOptions {
  readonly topic: Topic;
  readonly part: 'taught' | 'held out';
  readonly numTexts: number;
  readonly seed: number;
  /** The source of the facts; default: the topic. */
  readonly facts?: Topic;
}

/** Texts about a topic: each template in turn, filled at random. */
export function writeTopic({ topic, part, numTexts, seed, facts = topic }: CorpusOptions): TopicText[] {
  const random = createRandom(seed);
  const pick = (from: readonly string[]): string => from[Math.floor(random.next() * from.length)]!;
  const isTaught = part === 'taught';
  const templates = isTaught ? TAUGHT : HELD_OUT;
  return Array.from({ length: numTexts }, (_, i) => {
    const words: Record<string, string> = {
      ...facts,
      name: topic.name,
      child: pick(isTaught ? TAUGHT_CHILDREN : HELD_OUT_CHILDREN),
      elder: pick(ELDERS),
    };
    const text = templates[i % templates.length]!.replaceAll(/\{(\w+)\}/g, (_all, key: string) => words[key]!);
    const [prompt, answer] = text.split('|') as [string, string];
    return { prompt, answer };
  });
}
