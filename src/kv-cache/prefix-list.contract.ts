import { compareRanks, rankPage, type PageValue } from './leaf-order.ts';
import type { CachedPage } from './radix-node.ts';
import type { KvPage, PrefixMatch, Retention } from './types.ts';

/** A page identified by all tokens from the start of its sequence to its end. */
export interface ListedPage extends CachedPage {
  readonly namespace: string;
  readonly sequence: readonly number[];
}

/** Reference implementation of a prefix tree that scans all pages each time. */
export interface PrefixList {
  readonly listed: readonly ListedPage[];
  match(namespace: string, tokens: readonly number[]): PrefixMatch;
  touch(namespace: string, tokens: readonly number[], numTokens: number): void;
  insert(
    namespace: string,
    tokens: readonly number[],
    pages: readonly KvPage[],
    retention: Retention,
  ): { readonly result: KvPage[]; readonly released: KvPage[] };
  /** Evictable pages, in eviction order. */
  evictionOrder(retention: Retention): ListedPage[];
  remove(pages: readonly KvPage[]): void;
}

const startsWith = (tokens: readonly number[], beginning: readonly number[]): boolean =>
  beginning.length <= tokens.length && beginning.every((token, i) => tokens[i] === token);

const isSame = (a: readonly number[], b: readonly number[]): boolean => a.length === b.length && startsWith(a, b);

export function createPrefixList(pageTokens: number, value: PageValue): PrefixList {
  let listed: ListedPage[] = [];
  let now = 0;
  const startOf = (sequence: readonly number[]): number => Math.floor((sequence.length - 1) / pageTokens) * pageTokens;

  function find(namespace: string, tokens: readonly number[]) {
    const mine = listed.filter((entry) => entry.namespace === namespace);
    const whole: ListedPage[] = [];
    for (;;) {
      const end = (whole.length + 1) * pageTokens;
      const next = mine.find(
        ({ sequence }) => sequence.length === end && end <= tokens.length && startsWith(tokens, sequence),
      );
      if (next === undefined) break;
      whole.push(next);
    }
    const start = whole.length * pageTokens;
    let numShared = 0;
    let partial: ListedPage | null = null;
    const candidates = mine.filter(
      ({ sequence }) => startOf(sequence) === start && startsWith(tokens, sequence.slice(0, start)),
    );
    for (const entry of candidates.toSorted((a, b) => compareTokens(a.sequence, b.sequence))) {
      let shared = 0;
      const at = (i: number): boolean => i < tokens.length && entry.sequence[i] === tokens[i];
      while (start + shared < entry.sequence.length && at(start + shared)) shared++;
      if (shared > numShared) [numShared, partial] = [shared, entry];
    }
    return { whole, partial, numShared };
  }

  return {
    get listed() {
      return listed;
    },
    match(namespace, tokens) {
      const { whole, partial, numShared } = find(namespace, tokens);
      return {
        pages: whole.map(({ page }) => page),
        partial: partial === null ? null : { page: partial.page, numTokens: numShared },
      };
    },
    touch(namespace, tokens, numTokens) {
      const { whole, partial } = find(namespace, tokens.slice(0, numTokens));
      now++;
      for (const entry of partial === null ? whole : [...whole, partial]) {
        entry.numUses++;
        entry.lastUse = now;
      }
    },
    insert(namespace, tokens, pages, retention) {
      if (pages.length > 0) now++;
      const isSession = retention === 'session';
      const released: KvPage[] = [];
      const wholes: ListedPage[] = [];
      let hasForked = false;
      const result = pages.map((page, i) => {
        const sequence = tokens.slice(0, (i + 1) * pageTokens);
        const start = i * pageTokens;
        const here = listed.filter(
          (entry) =>
            entry.namespace === namespace &&
            startOf(entry.sequence) === start &&
            startsWith(sequence, entry.sequence.slice(0, start)),
        );
        const covering = here
          .filter((entry) => startsWith(entry.sequence, sequence))
          .toSorted((a, b) => compareTokens(a.sequence, b.sequence))[0];
        if (covering !== undefined) {
          covering.lastUse = now;
          covering.isSession ||= isSession;
          if (sequence.length === start + pageTokens) wholes.push(covering);
          return covering.sequence.length === sequence.length ? covering.page : page;
        }
        const entry: ListedPage = {
          namespace,
          sequence,
          page,
          numUses: 0,
          numForks: 0,
          isContinued: false,
          lastUse: now,
          isSession,
        };
        const old = here.find((other) => startsWith(sequence, other.sequence));
        if (old !== undefined) {
          entry.numUses = old.numUses;
          entry.isSession ||= old.isSession;
          released.push(old.page);
          listed = listed.filter((other) => other !== old);
        } else if (!hasForked && wholes.length === i && wholes.at(-1)?.isContinued === true) {
          for (const whole of wholes) whole.numForks++;
        }
        hasForked = true;
        const before = listed.find((other) => other.namespace === namespace && isSame(other.sequence, tokens.slice(0, start))); // prettier-ignore
        if (before !== undefined) before.isContinued = true;
        listed.push(entry);
        return page;
      });
      return { result, released };
    },
    evictionOrder(retention) {
      const isBehind = (a: ListedPage, b: ListedPage): boolean =>
        a !== b && a.namespace === b.namespace && startsWith(a.sequence, b.sequence);
      const isHeld = ({ page, isSession }: ListedPage): boolean =>
        page.numRefs > 1 || (isSession && retention === 'ordinary');
      const rank = (entry: ListedPage) =>
        rankPage(entry, value(entry, entry.sequence.length - startOf(entry.sequence), now), 0);
      return listed
        .filter((entry) => !isHeld(entry) && !listed.some((other) => isBehind(other, entry) && isHeld(other)))
        .toSorted((a, b) => compareRanks(rank(a), rank(b)) || b.sequence.length - a.sequence.length);
    },
    remove(pages) {
      listed = listed.filter(({ page }) => !pages.includes(page));
    },
  };
}

function compareTokens(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
