import { subjectOf } from './fact-key.ts';

/** First person, in English. */
const SELF = /\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|us|[Oo]urs?)\b/;
/** Capitalized at the beginning of a sentence, and no names. */
const OPENINGS = new Set('the a an my our your his her its their this that these those it he she they we you i in on at by to for from of with and but or so if when where what which who whom whose why how is are was were do does did can could will would should may might must has have had not no yes please since because after before as there here every each some any all one maybe yesterday today tomorrow never always'.split(' ')); // prettier-ignore
const WORD = /[\p{L}\p{M}]+/gu;

/** The persons and places that a text names, in lower case, and whether it speaks of the speaker. */
export interface Persons {
  readonly isSelf: boolean;
  readonly names: ReadonlySet<string>;
}

export function personsOf(text: string): Persons {
  const words = text.match(WORD) ?? [];
  const names = words.filter((word) => word.length > 1 && /^\p{Lu}/u.test(word)).map((word) => word.toLowerCase());
  return { isSelf: SELF.test(text), names: new Set(names.filter((name) => !OPENINGS.has(name))) };
}

/** The subject of a fact: `user`, or a name. */
export function subjectPersons(subject: string): Persons {
  const names = (subject.toLowerCase().match(WORD) ?? []).filter((name) => !OPENINGS.has(name));
  return subjectOf(subject) === 'user' ? { isSelf: true, names: new Set() } : { isSelf: false, names: new Set(names) };
}

/** Whether two texts speak of the same person: both of the speaker, or neither and of somebody with the same name. */
export function isSamePerson(a: Persons, b: Persons): boolean {
  if (a.isSelf || b.isSelf) return a.isSelf && b.isSelf;
  for (const name of a.names) if (b.names.has(name)) return true;
  return false;
}
