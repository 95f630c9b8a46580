import { sha256, toHex } from '../core/sha256.ts';
import { decodeNamespace, encodeNamespace, tenantKey } from './cache-namespace.ts';
import type { KvPage, PrefixTree } from './types.ts';

/** A change of the prefix cache. Only whole pages of shared namespaces are reported, each by the chained hash of all tokens up to its end. */
export type BlockEvent =
  | { readonly type: 'stored'; readonly hashes: readonly string[]; readonly parent: string | null }
  | { readonly type: 'removed'; readonly hashes: readonly string[] }
  | { readonly type: 'cleared' };

/** Reports the contents of a prefix tree to routers elsewhere. */
export interface BlockLog {
  /** The tree; its changes are logged from now on. */
  wrap(tree: PrefixTree): PrefixTree;
  /** The changes since the last call. */
  take(): readonly BlockEvent[];
  /** The hashes of the whole pages of a prompt, cached or not. */
  hashesOf(namespace: string, tokens: ArrayLike<number>): readonly string[];
}

const HASH_BYTES = 8;

/**
 * Hashes contain `salt` at every step: without it, a reader of the events could guess the text of a prompt page by page and compare.
 * The tenant is part of the first step, so that equal prompts of two tenants have no hash in common.
 */
export function createBlockLog({ salt, pageTokens }: { readonly salt: string; readonly pageTokens: number }): BlockLog {
  const saltBytes = sha256(new TextEncoder().encode(salt));
  const hashes = new WeakMap<KvPage, string>();
  const roots = new Map<string, Uint8Array>();
  let events: BlockEvent[] = [];

  /** Null: the namespace is private to one sequence. */
  function rootOf(id: string): Uint8Array | null {
    if (tenantKey(id) === null) return null;
    const cached = roots.get(id);
    if (cached !== undefined) return cached;
    // Kernels and precision differ from node to node; the tokens of a page do not.
    const root = digest(encodeNamespace({ ...decodeNamespace(id)!, policy: '' }));
    if (roots.size >= MAX_ROOTS) roots.clear();
    roots.set(id, root);
    return root;
  }

  function digest(...parts: readonly Uint8Array[]): Uint8Array {
    const bytes = new Uint8Array(saltBytes.length + parts.reduce((sum, part) => sum + part.length, 0));
    bytes.set(saltBytes);
    let offset = saltBytes.length;
    for (const part of parts) {
      bytes.set(part, offset);
      offset += part.length;
    }
    return sha256(bytes).subarray(0, HASH_BYTES);
  }

  /** The hash of page `index` of `tokens`; null for images, whose keys are numbers of this process. */
  function hashPage(parent: Uint8Array, tokens: ArrayLike<number>, index: number): Uint8Array | null {
    const bytes = new Uint8Array(4 * pageTokens);
    const view = new DataView(bytes.buffer);
    for (let i = 0; i < pageTokens; i++) {
      const token = tokens[index * pageTokens + i]!;
      if (token < 0) return null;
      view.setInt32(4 * i, token, true);
    }
    return digest(parent, bytes);
  }

  function note(id: string, tokens: ArrayLike<number>, numTokens: number, pages: readonly KvPage[]): void {
    let parent = rootOf(id);
    if (parent === null) return;
    const added: string[] = [];
    let before: string | null = null;
    for (let i = 0; i < Math.floor(numTokens / pageTokens); i++) {
      const known = hashes.get(pages[i]!);
      if (known !== undefined) {
        before = known;
        parent = fromHex(known);
        continue;
      }
      const hash = hashPage(parent, tokens, i);
      if (hash === null) break;
      const text = toHex(hash);
      hashes.set(pages[i]!, text);
      added.push(text);
      parent = hash;
    }
    if (added.length > 0) events.push({ type: 'stored', hashes: added, parent: before });
  }

  function forget(pages: readonly KvPage[]): void {
    const removed = pages.flatMap((page) => hashes.get(page) ?? []);
    for (const page of pages) hashes.delete(page);
    if (removed.length > 0) events.push({ type: 'removed', hashes: removed });
  }

  return {
    wrap: (tree) => ({
      ...tree,
      // Getters: a spread would copy their values of now.
      get numPages() {
        return tree.numPages;
      },
      get numNodes() {
        return tree.numNodes;
      },
      insert(id, tokens, numTokens, pages, retention) {
        const kept = tree.insert(id, tokens, numTokens, pages, retention);
        note(id, tokens, numTokens, kept);
        return kept;
      },
      evict(options) {
        const evicted: KvPage[] = [];
        try {
          return tree.evict({
            ...options,
            onEvict(page, place) {
              options.onEvict?.(page, place);
              evicted.push(page);
            },
          });
        } finally {
          forget(evicted);
        }
      },
      drop(id) {
        const index = tree.namespaces().indexOf(id);
        const pages = index < 0 ? [] : [...tree.owners()][index]!;
        tree.drop(id);
        forget(pages);
      },
    }),
    take() {
      const taken = events;
      events = [];
      return taken;
    },
    hashesOf(id, tokens) {
      let parent = rootOf(id);
      const found: string[] = [];
      for (let i = 0; parent !== null && i < Math.floor(tokens.length / pageTokens); i++) {
        parent = hashPage(parent, tokens, i);
        if (parent !== null) found.push(toHex(parent));
      }
      return found;
    },
  };
}

/** Namespaces are few; tenants choose how many. */
const MAX_ROOTS = 4096;

function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}
