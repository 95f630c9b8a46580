import { createRandom } from './random.ts';
import type { RecallQuestion, RecallSet } from './sets.ts';

const NAMES = ['Nadia', 'Tom', 'Priya', 'Luis', 'Greta', 'Omar', 'Hana', 'Felix', 'Ingrid', 'Mateo', 'Zoe', 'Kofi', 'Elena', 'Bruno', 'Yuki', 'Clara', 'Samir', 'Freya', 'Jonas', 'Aisha', 'Viktor', 'Maeve', 'Rafael', 'Linnea', 'Dmitri', 'Rosa', 'Anders', 'Leila', 'Hugo', 'Tamsin']; // prettier-ignore
const VALUES = {
  city: ['Lisbon', 'Bergen', 'Kraków', 'Ghent', 'Valencia', 'Trieste', 'Tampere', 'Galway', 'Leipzig', 'Porto'],
  animal: ['greyhound', 'tabby kitten', 'parrot', 'tortoise', 'rabbit', 'ferret'],
  pet: ['Biscuit', 'Mango', 'Pepper', 'Ziggy', 'Waffles', 'Juniper', 'Olive'],
  job: ['a nurse', 'a carpenter', 'an accountant', 'a tram driver', 'a chemist', 'a translator', 'a baker'],
  food: ['peanuts', 'shellfish', 'gluten', 'strawberries', 'cow milk', 'sesame'],
  date: ['the 3rd of March', 'the 19th of July', 'the 8th of October', 'the 27th of May', 'the 12th of January'],
  vehicle: ['a blue estate', 'an electric van', 'a small hatchback', 'an old motorbike', 'a cargo bicycle'],
  hobby: ['climbing', 'restoring clocks', 'foraging for mushrooms', 'playing the cello', 'building kites', 'sailing'],
  country: ['Iceland', 'Vietnam', 'Morocco', 'Peru', 'Georgia', 'Malta'],
  bone: ['wrist', 'ankle', 'collarbone', 'shoulder', 'thumb'],
  subject: ['marine biology', 'architecture', 'philosophy', 'robotics', 'law', 'geology'],
  day: ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Saturday'],
  instrument: ['oboe', 'drums', 'accordion', 'harp', 'double bass'],
  sum: ['40 euros', '120 euros', '75 euros', '300 euros'],
  book: ['a history of salt', 'a novel about lighthouses', 'a book on beekeeping', 'a thriller set in Oslo'],
} as const;
type Slot = keyof typeof VALUES;

/** Said about a person, and asked with other words. */
const FACTS: readonly { readonly said: readonly string[]; readonly asked: readonly string[] }[] = [
  { said: ['{who} just moved to {city}, into a flat above a bakery.', '{who} has settled in {city} for good.'], asked: ['Which town does {who} live in?', 'Where is the new home of {who}?'] }, // prettier-ignore
  { said: ['{who} adopted a {animal} called {pet}.', 'There is a new {animal} at the house of {who}; it answers to {pet}.'], asked: ['What is the name of the pet {who} has?', 'Which animal does {who} keep?'] }, // prettier-ignore
  { said: ['{who} started working as {job} last month.', 'From now on {who} earns money as {job}.'], asked: ['What is the profession of {who}?', 'What does {who} do for a living?'] }, // prettier-ignore
  { said: ['{who} cannot eat {food}, it causes a rash.', 'Remember that {food} makes {who} ill.'], asked: ['Which allergy does {who} have?', 'What should I not cook for {who}?'] }, // prettier-ignore
  { said: ['{who} was born on {date}.', 'We always celebrate {who} on {date}.'], asked: ['When is the birthday of {who}?', 'When should I send {who} a present?'] }, // prettier-ignore
  { said: ['{who} sold everything and bought {vehicle}.', '{who} goes everywhere with {vehicle} now.'], asked: ['What does {who} drive?', 'How does {who} get around?'] }, // prettier-ignore
  { said: ['{who} spends every weekend {hobby}.', 'Lately {who} talks of nothing but {hobby}.'], asked: ['What is the favourite pastime of {who}?', 'What does {who} like to do in free time?'] }, // prettier-ignore
  { said: ['{who} flew to {country} for two weeks.', '{who} came back tanned from {country}.'], asked: ['Where did {who} go on holiday?', 'Which foreign place did {who} travel to?'] }, // prettier-ignore
  { said: ['{who} broke a {bone} on the ski slope.', 'The {bone} of {who} is in plaster.'], asked: ['What injury did {who} have?', 'Which part of the body did {who} hurt?'] }, // prettier-ignore
  { said: ['{who} enrolled in {subject} this autumn.', '{who} writes a thesis in {subject}.'], asked: ['What does {who} study?', 'Which degree is {who} taking at university?'] }, // prettier-ignore
  { said: ['{who} can only meet on a {day}.', 'Keep {day} free, that is when {who} comes over.'], asked: ['On which weekday does {who} visit?', 'When is {who} available?'] }, // prettier-ignore
  { said: ['{who} took up the {instrument}.', '{who} rehearses the {instrument} with an orchestra.'], asked: ['Which music does {who} make?', 'What instrument does {who} play?'] }, // prettier-ignore
  { said: ['I lent {who} {sum} for the rent.', '{who} still has {sum} of mine.'], asked: ['How much does {who} owe me?', 'What debt does {who} have to pay back?'] }, // prettier-ignore
  { said: ['{who} gave me {book} to read.', 'I borrowed {book} from {who}.'], asked: ['Which reading did {who} recommend?', 'Whose novel is on my shelf, and what is it about: {who}?'] }, // prettier-ignore
];
const SMALL_TALK = ['It rained all day in {city}, so we stayed in.', 'Can you suggest something to cook without {food}?', 'I slept badly and forgot the meeting on {day}.', 'My train to {city} was late again.', 'How do I get a stain of coffee out of a shirt?', 'Please write a short poem about {hobby}.', 'Is {country} expensive in winter?', 'What is the difference between {subject} and astronomy?', 'Tell me a joke about a {animal}.', 'I need a gift for less than {sum}.', 'Do I need a licence for {vehicle}?', 'How long does a {bone} take to heal?', 'What do you know about the {instrument}?', 'The neighbours were loud until two.']; // prettier-ignore
const REPLIES = ['Thanks for telling me.', 'That sounds interesting!', 'I will keep that in mind.', 'Good to know. Anything else?', 'I see. How do you feel about it?', 'Happy to help with that.']; // prettier-ignore
const OPENINGS = ['By the way, ', 'Guess what: ', 'So, ', '', '', 'I forgot to say that ', 'You know, '];

/** Turns of long conversations: each person's facts are told once, among small talk with the same words. */
export function makeConversations(
  name: string,
  options: {
    readonly seed: number;
    readonly numTurns: number;
    readonly isFollowUp?: boolean;
  },
): RecallSet {
  const random = createRandom(options.seed);
  const choose = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const fill = (template: string, who: string): string =>
    template.replace('{who}', who).replace(/\{(\w+)\}/g, (_, slot: string) => choose(VALUES[slot as Slot]));
  const told = NAMES.flatMap((who) => FACTS.map((fact) => ({ who, fact }))).filter(() => random(10) < 8);
  const turns: { text: string; fact?: (typeof told)[number] }[] = told.map(({ who, fact }) => ({
    text: `${choose(OPENINGS)}${fill(choose(fact.said), who)}\n${choose(REPLIES)}`,
    fact: { who, fact },
  }));
  while (turns.length < options.numTurns) {
    const isAboutSomeone = random(4) === 0;
    const text = isAboutSomeone
      ? `${choose(NAMES)} says hello. ${fill(choose(SMALL_TALK), '')}`
      : fill(choose(SMALL_TALK), '');
    turns.push({ text: `${text}\n${choose(REPLIES)}` });
  }
  for (let i = turns.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [turns[i], turns[j]] = [turns[j]!, turns[i]!];
  }
  const questions = turns.flatMap(({ fact: one }, evidence): RecallQuestion[] => {
    if (one === undefined) return [];
    const asked = choose(one.fact.asked);
    if (options.isFollowUp !== true) return [{ text: asked.replace('{who}', one.who), evidence }];
    const turns = [`Do you remember ${one.who}?`];
    return [{ text: `And ${asked.replace('{who}', 'that person').toLowerCase()}`, turns, evidence }];
  });
  return { name, texts: turns.map(({ text }) => text), questions };
}
