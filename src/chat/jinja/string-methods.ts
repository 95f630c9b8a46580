import { argument, integerArgument, textArgument } from './arguments.ts';
import type { Budget } from './budget.ts';
import { chargeSearch, replaceText, splitText } from './text-search.ts';
import { templateError } from './values.ts';
import type { CallArguments, Value } from './values.ts';

export type StringMethod = (budget: Budget, self: string, args: CallArguments) => Value;

/** Python's `strip` family: removes whitespace or a set of characters. */
function strip(self: string, args: CallArguments, atStart: boolean, atEnd: boolean): string {
  const chars = argument(args, 0, 'chars');
  if (chars === undefined || chars === null) {
    const text = atStart ? self.trimStart() : self;
    return atEnd ? text.trimEnd() : text;
  }
  const set = new Set(textArgument(args, 0, 'chars'));
  let start = 0;
  let end = self.length;
  if (atStart) while (start < end && set.has(self[start] as string)) start++;
  if (atEnd) while (end > start && set.has(self[end - 1] as string)) end--;
  return self.slice(start, end);
}

function split(budget: Budget, self: string, args: CallArguments): string[] {
  const separator = argument(args, 0, 'sep');
  const maxSplit = integerArgument(args, 1, 'maxsplit', -1);
  if (separator === undefined || separator === null) {
    const words: string[] = [];
    for (const { 0: word, index } of self.matchAll(/\S+/g)) {
      budget.items(1);
      if (maxSplit >= 0 && words.length === maxSplit) return [...words, self.slice(index)];
      words.push(word);
    }
    budget.items(words.length);
    return words;
  }
  const parts = splitText(budget, self, textArgument(args, 0, 'sep'));
  if (maxSplit < 0 || parts.length <= maxSplit + 1) return parts;
  return [...parts.slice(0, maxSplit), parts.slice(maxSplit).join(separator as string)];
}

function splitFromRight(budget: Budget, self: string, args: CallArguments): string[] {
  const separator = textArgument(args, 0, 'sep');
  const maxSplit = integerArgument(args, 1, 'maxsplit', -1);
  const parts = splitText(budget, self, separator);
  if (maxSplit < 0 || parts.length <= maxSplit + 1) return parts;
  const cut = parts.length - maxSplit;
  return [parts.slice(0, cut).join(separator), ...parts.slice(cut)];
}

function hasAffix(args: CallArguments, test: (affix: string) => boolean): boolean {
  const affixes = argument(args, 0, 'prefix');
  if (!Array.isArray(affixes)) return test(textArgument(args, 0, 'prefix'));
  return affixes.some((affix) => {
    if (typeof affix !== 'string') throw templateError('startswith() and endswith() take strings');
    return test(affix);
  });
}

export function titleCase(text: string): string {
  return text.replace(/\p{L}+/gu, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase());
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();
}

/** Python's string methods that chat templates call; the caller has already charged for reading `self`. */
export const STRING_METHODS: ReadonlyMap<string, StringMethod> = new Map<string, StringMethod>([
  ['upper', (_budget, self) => self.toUpperCase()],
  ['lower', (_budget, self) => self.toLowerCase()],
  ['title', (_budget, self) => titleCase(self)],
  ['capitalize', (_budget, self) => capitalize(self)],
  ['strip', (_budget, self, args) => strip(self, args, true, true)],
  ['lstrip', (_budget, self, args) => strip(self, args, true, false)],
  ['rstrip', (_budget, self, args) => strip(self, args, false, true)],
  ['startswith', (_budget, self, args) => hasAffix(args, (affix) => self.startsWith(affix))],
  ['endswith', (_budget, self, args) => hasAffix(args, (affix) => self.endsWith(affix))],
  [
    'removeprefix',
    (_budget, self, args) => {
      const prefix = textArgument(args, 0, 'prefix');
      return self.startsWith(prefix) ? self.slice(prefix.length) : self;
    },
  ],
  [
    'removesuffix',
    (_budget, self, args) => {
      const suffix = textArgument(args, 0, 'suffix');
      return suffix !== '' && self.endsWith(suffix) ? self.slice(0, -suffix.length) : self;
    },
  ],
  ['split', split],
  ['rsplit', splitFromRight],
  ['splitlines', (budget, self) => (self === '' ? [] : splitText(budget, self.replace(/\n$/, ''), '\n'))],
  [
    'replace',
    (budget, self, args) =>
      replaceText(
        budget,
        self,
        textArgument(args, 0, 'old'),
        textArgument(args, 1, 'new'),
        integerArgument(args, 2, 'count', -1),
      ),
  ],
  [
    'find',
    (budget, self, args) => {
      const needle = textArgument(args, 0, 'sub');
      chargeSearch(budget, self, needle);
      return self.indexOf(needle);
    },
  ],
  ['count', (budget, self, args) => splitText(budget, self, textArgument(args, 0, 'sub')).length - 1],
  [
    'join',
    (budget, self, args) => {
      const items = argument(args, 0, 'iterable');
      if (!Array.isArray(items)) throw templateError('join() takes a list');
      let length = 0;
      for (const item of items) {
        if (typeof item !== 'string') throw templateError('join() takes a list of strings');
        length += item.length + self.length;
      }
      budget.text(length);
      return items.join(self);
    },
  ],
  ['isdigit', (_budget, self) => /^\p{Nd}+$/u.test(self)],
  ['isspace', (_budget, self) => /^\s+$/.test(self)],
]);
