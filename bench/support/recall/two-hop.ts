import { createRandom } from './random.ts';
import type { RecallQuestion, RecallSet } from './sets.ts';

const PEOPLE = ['Nadia', 'Tom', 'Priya', 'Luis', 'Greta', 'Omar', 'Hana', 'Felix', 'Ingrid', 'Mateo', 'Zoe', 'Kofi', 'Elena', 'Bruno', 'Yuki', 'Clara', 'Samir', 'Freya', 'Jonas', 'Aisha', 'Viktor', 'Maeve', 'Rafael', 'Linnea', 'Dmitri']; // prettier-ignore
const SYLLABLES = [
  'ba',
  'ke',
  'lo',
  'ru',
  'ti',
  'ma',
  've',
  'zo',
  'ni',
  'sha',
  'dor',
  'pel',
  'gan',
  'wi',
  'fro',
  'lun',
];

interface Topic {
  readonly thing: string;
  readonly named: readonly string[];
  /** What is said of the named thing, and asked of its owner's. */
  readonly facts: readonly { readonly said: string; readonly asked: string; readonly values: readonly string[] }[];
}

const TOPICS: readonly Topic[] = [
  {
    thing: 'dog',
    named: ["{who}'s dog is called {name}.", '{who} got a dog last spring and named it {name}.'],
    facts: [
      { said: 'In the morning {name} eats nothing but {value}.', asked: "What does {who}'s dog eat?", values: ['boiled fish', 'rice with carrots', 'dry biscuits', 'chicken hearts'] }, // prettier-ignore
      { said: 'The vet says {name} must take {value} twice a day.', asked: 'Which medicine does the dog of {who} take?', values: ['two drops of oil', 'half a tablet', 'a spoon of syrup'] }, // prettier-ignore
    ],
  },
  {
    thing: 'project',
    named: ['{who} leads a project with the code name {name}.', 'The new project of {who} is called {name}.'],
    facts: [
      { said: 'The deadline of {name} was moved to {value}.', asked: 'When is the project of {who} due?', values: ['the 4th of May', 'the end of the quarter', 'next Friday', 'October'] }, // prettier-ignore
      { said: 'We store the data of {name} in {value}.', asked: "Where is the data of {who}'s project?", values: ['the Bergen office', 'a locked cabinet', 'the second cluster'] }, // prettier-ignore
    ],
  },
];
const HELD_OUT: readonly Topic[] = [
  {
    thing: 'boat',
    named: [
      '{who} keeps a sailing boat; she carries the name {name}.',
      'On Sundays {who} sails with {name}, a small boat.',
    ],
    facts: [
      { said: '{name} lies at {value} over the winter.', asked: 'At which place is the boat of {who} in winter?', values: ['the north pier', 'a shed near the lock', 'the yard of the club'] }, // prettier-ignore
      { said: 'Somebody painted {name} {value} last week.', asked: "Which colour has {who}'s boat now?", values: ['dark green', 'yellow', 'white with a red line'] }, // prettier-ignore
    ],
  },
  {
    thing: 'server',
    named: [
      'The machine that {who} looks after has the host name {name}.',
      '{who} is responsible for the server {name}.',
    ],
    facts: [
      { said: 'After the update {name} reboots every {value}.', asked: 'How often does the server of {who} restart?', values: ['night', 'second hour', 'Tuesday'] }, // prettier-ignore
      { said: 'The root password of {name} lies in {value}.', asked: "Where do I find the password of {who}'s machine?", values: ['the red envelope', 'the safe upstairs', 'the old vault'] }, // prettier-ignore
    ],
  },
];

/** Questions about something that one text names and only another text describes, by its name. */
export function makeTwoHop(name: string, options: { readonly seed: number; readonly isHeldOut: boolean }): RecallSet {
  const random = createRandom(options.seed);
  const choose = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const taken = new Set<string>();
  const newName = (): string => {
    for (;;) {
      const made = Array.from({ length: 2 + random(2) }, () => choose(SYLLABLES)).join('');
      if (taken.has(made)) continue;
      taken.add(made);
      return made[0]!.toUpperCase() + made.slice(1);
    }
  };
  const texts: { text: string; asked: string | null }[] = [];
  for (const who of PEOPLE) {
    for (const { named, facts } of options.isHeldOut ? HELD_OUT : TOPICS) {
      const called = newName();
      const write = (template: string): string => template.replaceAll('{who}', who).replaceAll('{name}', called);
      texts.push({ text: write(choose(named)), asked: null });
      for (const { said, asked, values } of facts) {
        texts.push({ text: write(said).replace('{value}', choose(values)), asked: write(asked) });
        // The same is said of things that nobody asks for.
        for (let i = 0; i < 2; i++) {
          texts.push({ text: said.replace('{name}', newName()).replace('{value}', choose(values)), asked: null });
        }
      }
    }
    texts.push({ text: `${who} says hello and comes ${choose(['later', 'on Monday', 'by train'])}.`, asked: null });
  }
  for (let i = texts.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [texts[i], texts[j]] = [texts[j]!, texts[i]!];
  }
  const questions = texts.flatMap(({ asked }, evidence): RecallQuestion[] => (asked === null ? [] : [{ text: asked, evidence }])); // prettier-ignore
  return { name, texts: texts.map(({ text }) => text), questions };
}
