import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { contentWords } from '../common/words.ts';
import type { AgentScope, Provenance, Statement } from './types.ts';

/**
 * Attributes that have several values at once: "likes hiking" does not contradict "likes tea". Every other attribute has one
 * value, and a newer one replaces it.
 */
const SETS = new Set(
  'like likes love loves enjoy enjoys hate hates dislike dislikes hobby hobbies interest interests own owns has have allergy allergies allergic speak speaks language languages friend friends child children sibling siblings brother sister pet pets visited skill skills knows'.split(
    ' ',
  ),
);
/** Names that models use for one attribute. */
// prettier-ignore
const SYNONYMS: Readonly<Record<string, string>> = {
  'lives in': 'city', 'live in': 'city', 'living in': 'city', lives: 'city', location: 'city', residence: 'city', 'moved to': 'city', 'home city': 'city', 'city of residence': 'city', 'current city': 'city',
  occupation: 'job', profession: 'job', 'works as': 'job', 'job title': 'job', 'current job': 'job',
  'works at': 'employer', 'works for': 'employer', company: 'employer',
  called: 'name', 'is called': 'name', named: 'name',
  'email address': 'email', 'phone number': 'phone',
};
const SELF = new Set(['user', 'the user', 'i', 'me', 'my', 'myself', 'speaker', 'the speaker']);

/** The form in which two spellings of a name are one. */
const plain = (text: string): string =>
  text.normalize('NFKC').toLowerCase().replaceAll(/['’]s\b/g, '').replaceAll(/[^\p{L}\p{N}]+/gu, ' ').trim(); // prettier-ignore

export function subjectOf(subject: string): string {
  const name = plain(subject);
  return SELF.has(name) ? 'user' : name;
}

/** "Favourite colour of", "favorite_color" and "favourite colour" are one attribute. */
function attributeOf(attribute: string): string {
  const spelled = plain(attribute).replaceAll('colour', 'color').replaceAll('favourite', 'favorite');
  const synonym = Object.hasOwn(SYNONYMS, spelled) ? SYNONYMS[spelled]! : spelled;
  const words = contentWords(synonym);
  return words.length === 0 ? synonym : words.join(' ');
}

export const isSet = (attribute: string): boolean => plain(attribute).split(' ').some((word) => SETS.has(word)); // prettier-ignore
export const sameValue = (a: string, b: string): boolean => plain(a) === plain(b) && plain(a) !== '';

/**
 * Statements with the same id replace each other. The speaker is part of it: words of a tool or document never replace words
 * of the user, and one tool never speaks for another.
 */
export function factIdOf(
  sha256: Sha256,
  { tenant, userId }: AgentScope,
  { speaker, speakerName }: Pick<Provenance, 'speaker' | 'speakerName'>,
  { subject, attribute, value }: Pick<Statement, 'subject' | 'attribute' | 'value'>,
): string {
  const owner = userId === null ? 'any' : `user ${userId}`;
  const voice = `${speaker} ${speakerName ?? ''}`;
  const values = isSet(attribute) ? [plain(value)] : [];
  return nameId(sha256, tenant, 'agent-fact', owner, voice, subjectOf(subject), attributeOf(attribute), ...values);
}
