import { clipText } from '../common/text-limits.ts';
import { contentWords, namesOf, wordsOf } from '../common/words.ts';
import type { Embedder } from '../embedder-types.ts';
import { CONTEXT_WEIGHT } from '../lexical/search-lexical.ts';
import { type EmbeddedText, embedText } from './embed-text.ts';

/** Refer to something named before. */
const REFERENCES = new Set('it its itself they them their theirs he him his she her hers this that these those one ones'.split(' ')); // prettier-ignore
/** First words of a follow-up, in English, German, Dutch, French, Spanish, Italian and Portuguese. */
const OPENINGS = new Set('and but or then also und oder aber en maar et mais ou y pero o e ma'.split(' '));
const OPENING_PAIR = /^\s*(?:what|how) about\b/i;
/** A longer question names its subject, even where it has a pronoun. */
const MAX_CONTENT_WORDS = 8;
/** A question with at most as many, and without a name, cannot stand alone. */
const FEW_CONTENT_WORDS = 1;
/** Messages that are read back until one stands alone. */
const MAX_TURNS = 3;
/** Of each message: the subject comes first. */
const MAX_TURN_CHARS = 300;

/** Whether a question is only understood with the messages before it. */
export function isFollowUp(question: string): boolean {
  const words = wordsOf(question).map((word) => word.toLowerCase());
  const numContent = contentWords(question).length;
  if (numContent > MAX_CONTENT_WORDS) return false;
  if (OPENING_PAIR.test(question) || OPENINGS.has(words[0] ?? '')) return true;
  // "When did Ada sell her car?" has the name that its pronoun stands for.
  if (namesOf(question).length > 0) return false;
  return numContent <= FEW_CONTENT_WORDS || words.some((word) => REFERENCES.has(word));
}

/**
 * The messages that a question refers to, as one text; empty: it stands alone. `turns`: the earlier messages of the user, the
 * oldest first. Answers are left out: they repeat texts that were found before, and would find them again.
 */
export function contextOf(question: string, turns: readonly string[] = []): string {
  if (turns.length === 0 || !isFollowUp(question)) return '';
  const recent = turns.slice(-MAX_TURNS);
  const first = Math.max(0, recent.findLastIndex((turn) => !isFollowUp(turn))); // prettier-ignore
  return recent.slice(first).map((turn) => clipText(turn, MAX_TURN_CHARS).text).join('\n').trim(); // prettier-ignore
}

/** The embedding of a question, moved towards that of the messages it refers to. */
export async function embedQuestion(
  embedder: Pick<Embedder, 'embed' | 'fingerprint'> | null,
  question: string,
  turns: readonly string[] = [],
): Promise<EmbeddedText | null> {
  const context = contextOf(question, turns);
  if (context === '') return embedText(embedder, question);
  const [asked, before] = await Promise.all([embedText(embedder, question), embedText(embedder, context)]);
  if (asked === null || before === null) return asked ?? before;
  const sum = asked.vector.map((value, i) => value + CONTEXT_WEIGHT * before.vector[i]!);
  const length = Math.hypot(...sum);
  return length === 0 ? asked : { vector: sum.map((value) => value / length), space: asked.space };
}
