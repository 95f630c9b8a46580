import { readFileSync } from 'node:fs';
import { createRandom } from './random.ts';
import { type RecallQuestion, type RecallSet, pick, untokenize } from './sets.ts';

const SPEAKERS = ['Nadia', 'Tom', 'Priya', 'Luis', 'Greta', 'Omar', 'Hana', 'Felix'];
const LEADS = ['I read that', 'Did you know?', 'My favourite part:', 'I noted this:', 'The chapter says', 'Listen:'];
const ASKED = ['What did {who} tell us about {topic}?', 'What was it that {who} read about {topic}?', 'Do you remember what {who} said on {topic}?']; // prettier-ignore
const MIN_WORDS = 12;
const MAX_WORDS = 40;
const NUM_TOPIC_WORDS = 2;

/** Turns of a group that reads articles aloud; the questions name the speaker and two words of the turn, in another order. */
export function makeReadingGroup(path: string, numTurns: number, numQuestions: number): RecallSet {
  const random = createRandom(11);
  const choose = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const sentences = readFileSync(path, 'utf8')
    .split('\n')
    .map(untokenize)
    .filter((line) => !line.startsWith('='))
    .flatMap((line) => line.split(/(?<=[.!?]) (?=[A-Z"])/))
    .filter((sentence) => {
      const { length } = sentence.split(' ');
      return length >= MIN_WORDS && length <= MAX_WORDS;
    });
  const turns = pick(sentences, numTurns).map((sentence) => ({ who: choose(SPEAKERS), sentence }));
  const questions = turns.flatMap(({ who, sentence }, evidence): RecallQuestion[] => {
    const words = sentence.match(/\b[a-z]{6,}\b/g) ?? [];
    const topic = [...new Set(words)].toSorted(() => random(3) - 1).slice(0, NUM_TOPIC_WORDS);
    if (topic.length < NUM_TOPIC_WORDS) return [];
    return [{ text: choose(ASKED).replace('{who}', who).replace('{topic}', topic.join(' and ')), evidence }];
  });
  return {
    name: 'reading group',
    texts: turns.map(({ who, sentence }) => `${who}: ${choose(LEADS)} ${sentence}`),
    questions: pick(questions, numQuestions),
  };
}
