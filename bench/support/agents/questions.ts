import { createRandom } from '../../../src/core/random.ts';

/** A question whose answer a program can check. */
export interface CheckedQuestion {
  readonly text: string;
  /** A right answer contains one of them as words. */
  readonly keys: readonly string[];
  readonly topic: string;
}

const CAPITALS = 'France Paris;Germany Berlin;Italy Rome;Spain Madrid;Portugal Lisbon;Poland Warsaw;Hungary Budapest;Austria Vienna;Norway Oslo;Sweden Stockholm;Finland Helsinki;Denmark Copenhagen;Greece Athens;Ireland Dublin;Egypt Cairo;Kenya Nairobi;Ghana Accra;Nigeria Abuja;Morocco Rabat;Ethiopia Addis Ababa;Japan Tokyo;China Beijing;Thailand Bangkok;Vietnam Hanoi;Nepal Kathmandu;Mongolia Ulaanbaatar;Kazakhstan Astana;Uzbekistan Tashkent;Turkey Ankara;Iraq Baghdad;Canada Ottawa;Brazil Brasília|Brasilia;Argentina Buenos Aires;Chile Santiago;Peru Lima;Bolivia Sucre|La Paz;Ecuador Quito;Uruguay Montevideo;Australia Canberra;Cuba Havana;Iceland Reykjavik|Reykjavík;Estonia Tallinn;Latvia Riga;Slovenia Ljubljana;Bulgaria Sofia;Zambia Lusaka;Senegal Dakar;Madagascar Antananarivo'; // prettier-ignore
const SYMBOLS = 'gold Au;silver Ag;iron Fe;copper Cu;sodium Na;potassium K;lead Pb;tin Sn;tungsten W;helium He;neon Ne;zinc Zn;mercury Hg;calcium Ca;magnesium Mg;chlorine Cl;nickel Ni;cobalt Co;antimony Sb;platinum Pt'; // prettier-ignore
const AUTHORS = 'Hamlet Shakespeare;Pride and Prejudice Austen;War and Peace Tolstoy;Crime and Punishment Dostoevsky|Dostoyevsky;Don Quixote Cervantes;Moby-Dick Melville;The Odyssey Homer;Faust Goethe;The Trial Kafka;Ulysses Joyce;Frankenstein Shelley;Dracula Stoker;Madame Bovary Flaubert;Hedda Gabler Ibsen;The Divine Comedy Dante;Oliver Twist Dickens;Jane Eyre Brontë|Bronte;The Stranger Camus;1984 Orwell;Brave New World Huxley;The Cherry Orchard Chekhov;Buddenbrooks Mann;Robinson Crusoe Defoe;The Metamorphosis Kafka'; // prettier-ignore
const OPPOSITES = 'hot cold;big small|little;early late;cheap expensive;empty full;brave cowardly|afraid|timid|fearful;ancient modern|new|recent;shallow deep;guilty innocent;rough smooth;generous stingy|selfish|greedy|mean;scarce abundant|plentiful;rigid flexible;arrive depart|leave;expand contract|shrink;victory defeat;question answer;permanent temporary;transparent opaque;optimist pessimist'; // prettier-ignore
const ANIMALS = 'dog puppy;cat kitten;cow calf;horse foal;sheep lamb;goat kid;pig piglet;bear cub;duck duckling;goose gosling;swan cygnet;frog tadpole|froglet;kangaroo joey;deer fawn;eagle eaglet;hare leveret;owl owlet;seal pup'; // prettier-ignore
const LANGUAGES = 'Brazil Portuguese;Austria German;Egypt Arabic;Iran Persian|Farsi;Kenya Swahili|English;Ethiopia Amharic;Israel Hebrew;Cambodia Khmer;Mexico Spanish;Haiti Creole|French;Laos Lao;Pakistan Urdu|English;Armenia Armenian;Angola Portuguese;Malaysia Malay;Bangladesh Bengali|Bangla'; // prettier-ignore

function table(rows: string, topic: string, ask: (subject: string) => string): CheckedQuestion[] {
  return rows.split(';').map((row) => {
    // The answer is the end of the row: one word, or what follows a subject that is a title.
    const match = /^(.+?) (Addis Ababa|Buenos Aires|Sucre\|La Paz|\S+)$/u.exec(row)!;
    return { text: ask(match[1]!), keys: match[2]!.split('|'), topic };
  });
}

/** Sums and products of growing size: a small model gets the first ones right. */
function arithmetic(count: number): CheckedQuestion[] {
  const random = createRandom(7);
  const draw = (max: number): number => 2 + Math.floor(random.next() * (max - 2));
  return Array.from({ length: count }, (_, i) => {
    const isSum = i % 2 === 0;
    const max = isSum ? [10, 30, 100, 1000][i % 4]! : [6, 10, 13, 30][(i >> 1) % 4]!;
    const [a, b] = [draw(max), draw(max)];
    const result = isSum ? a + b : a * b;
    return {
      text: isSum ? `What is ${a} plus ${b}?` : `What is ${a} times ${b}?`,
      keys: [String(result), result.toLocaleString('en')],
      topic: 'arithmetic',
    };
  });
}

/** All questions, in a fixed order. */
export function checkedQuestions(): readonly CheckedQuestion[] {
  return [
    ...table(CAPITALS, 'capitals', (name) => `What is the capital of ${name}?`),
    ...table(SYMBOLS, 'symbols', (name) => `What is the chemical symbol of ${name}?`),
    ...table(AUTHORS, 'authors', (name) => `Who wrote ${name}?`),
    ...table(OPPOSITES, 'opposites', (name) => `What is the opposite of "${name}"? Answer with one word.`),
    ...table(ANIMALS, 'animals', (name) => `What is the young of a ${name} called?`),
    ...table(LANGUAGES, 'languages', (name) => `Which language do most people speak in ${name}?`),
    ...arithmetic(60),
  ];
}

/** Whether an answer contains a right word, as a word of its own. */
export const isRight = (answer: string, { keys }: CheckedQuestion): boolean =>
  keys.some((key) => {
    const escaped = key.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    // A symbol such as "K" must not be found in "know"; other words may be in capitals.
    return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, key.length <= 2 ? 'u' : 'iu').test(answer);
  });

/** Depends on the text alone: a question is held out in every run. */
export function isHeldOut({ text }: Pick<CheckedQuestion, 'text'>): boolean {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 3) % 2 === 0;
}
