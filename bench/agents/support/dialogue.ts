import { createRandom } from '../../support/recall/random.ts';
import type { SentenceSet } from './topics.ts';

export interface Message {
  readonly speaker: 'user' | 'assistant';
  readonly text: string;
}

/** A sentence that states a fact, as a faultless extraction reads it. */
export interface Evidence {
  readonly message: number;
  readonly sentence: string;
  readonly subject: string;
  readonly attribute: string;
  readonly value: string;
}

/** A question and the sentences that answer it, the newest last. */
export interface Question {
  readonly text: string;
  readonly evidence: readonly Evidence[];
}

export interface Dialogue {
  readonly messages: readonly Message[];
  /** About facts that were said once. */
  readonly questions: readonly Question[];
  /** About facts that changed. */
  readonly changing: readonly Question[];
}

interface Said extends Omit<Evidence, 'message'> {
  /** Which question it belongs to. */
  readonly about: number;
}

/** Turns of the user in one conversation. */
const NUM_TURNS = 260;
/** Facts of the user that change. */
const NUM_CHANGING = 5;

/**
 * A long conversation: facts of the user and of others, each in the middle of a message about something else. Questions use
 * other words than the facts.
 */
export function makeDialogue(set: SentenceSet, seed: number): Dialogue {
  const random = createRandom(seed);
  const choose = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const fill = (template: string, who: string, value: string): string => {
    const sentence = template.replaceAll('{who}', who).replaceAll('{v}', value);
    return sentence[0]!.toUpperCase() + sentence.slice(1);
  };
  const shuffle = <T>(items: readonly T[]): T[] => {
    const copy = [...items];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = random(i + 1);
      [copy[i], copy[j]] = [copy[j]!, copy[i]!];
    }
    return copy;
  };
  const texts: string[] = [];
  const isChanging: boolean[] = [];
  /** Each list in the order in which it is said. */
  const told: Said[][] = [];
  for (const [i, topic] of shuffle(set.topics).entries()) {
    const isFirst = i < NUM_CHANGING;
    const values = shuffle(topic.values);
    const { attribute } = topic;
    const ofUser = values.slice(0, isFirst ? 3 + random(2) : 1).map((value, version) => {
      const sentence = fill(choose(version === 0 ? topic.self : topic.changed), '', value);
      return { sentence, subject: 'user', attribute, value, about: texts.length };
    });
    told.push(ofUser);
    texts.push(choose(topic.askSelf));
    isChanging.push(isFirst);
    for (const who of shuffle(set.names).slice(0, 5)) {
      const value = choose(topic.values);
      told.push([{ sentence: fill(choose(topic.other), who, value), subject: who, attribute, value, about: texts.length }]); // prettier-ignore
      texts.push(choose(topic.askOther).replaceAll('{who}', who));
      isChanging.push(false);
    }
  }
  // Each fact gets random turns; those of one list stay in order.
  const slots = shuffle(Array.from({ length: NUM_TURNS }, (_, turn) => turn));
  const sentenceAt = new Map<number, Said>();
  for (const list of told) {
    const turns = slots.splice(0, list.length).sort((a, b) => a - b);
    list.forEach((said, i) => sentenceAt.set(turns[i]!, said));
  }
  const messages: Message[] = [];
  const evidence: Evidence[][] = texts.map(() => []);
  for (let turn = 0; turn < NUM_TURNS; turn++) {
    const said = sentenceAt.get(turn);
    const chatter = shuffle(set.chatter).slice(0, 1 + random(3));
    if (said !== undefined) {
      chatter.splice(random(chatter.length + 1), 0, said.sentence);
      const { about, ...fact } = said;
      evidence[about]!.push({ message: messages.length, ...fact });
    }
    messages.push({ speaker: 'user', text: chatter.join(' ') });
    messages.push({ speaker: 'assistant', text: choose(set.replies) });
  }
  const questions = texts.map((text, i) => ({ text, evidence: evidence[i]! }));
  return {
    messages,
    questions: questions.filter((_, i) => !isChanging[i]),
    changing: questions.filter((_, i) => isChanging[i]),
  };
}
