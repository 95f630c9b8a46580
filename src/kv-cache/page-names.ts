import type { ImageKeys } from './image-keys.ts';
import type { KvPage, NamingSpace, TreePlace } from './types.ts';

/** The keys of pages in a store; remembers those of pages in memory. */
export interface PageNames {
  /** Null: the tokens of the page, or of one before it, cannot be named any more. */
  keyOf(space: NamingSpace, page: KvPage, place: TreePlace): string | null;
  /** The keys of the whole pages of a prompt, as far as they can be named. */
  keysOf(space: NamingSpace, tokens: readonly number[]): Generator<string>;
  remember(page: KvPage, key: string): void;
}

export function createPageNames(images: Pick<ImageKeys, 'spell'>, pageTokens: number): PageNames {
  const keys = new WeakMap<KvPage, string>();

  function keyAfter(space: NamingSpace, parentKey: string, tokens: ArrayLike<number>): string | null {
    const spelled = images.spell(tokens);
    return spelled === null ? null : space.childKey(parentKey, spelled);
  }

  return {
    remember: (page, key) => void keys.set(page, key),
    keyOf(space, page, place) {
      // Without recursion: a chain may be thousands of pages long.
      const path: { page: KvPage; place: TreePlace }[] = [];
      let at: { page: KvPage; place: TreePlace } | null = { page, place };
      while (at !== null && !keys.has(at.page)) {
        path.push(at);
        at = at.place.parent();
      }
      let key = at === null ? space.rootKey : keys.get(at.page)!;
      for (const step of path.toReversed()) {
        const next = keyAfter(space, key, step.place.tokens);
        if (next === null) return null;
        key = next;
        keys.set(step.page, key);
      }
      return key;
    },
    *keysOf(space, tokens) {
      let key: string | null = space.rootKey;
      for (let start = 0; start + pageTokens <= tokens.length; start += pageTokens) {
        key = keyAfter(space, key, tokens.slice(start, start + pageTokens));
        if (key === null) return;
        yield key;
      }
    },
  };
}
