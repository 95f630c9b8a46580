import type { PageMemory } from './page-memory.ts';
import type { StateShelf } from './state-shelf.ts';
import type { KvPage, PagePool, PageTier } from './types.ts';

/** A page outside the pool: its bytes, followed by the state after it if that was saved. */
export interface PageContent {
  readonly tier: PageTier;
  readonly bytes: Uint8Array;
}

/** Where stored pages are placed. */
export interface PageSpace {
  readonly memory: PageMemory;
  readonly pool: Pick<PagePool, 'allocate'>;
  /** Null: no layer is recurrent. */
  readonly states: StateShelf | null;
  /** Evicts idle pages to free memory; false if not possible. */
  makeRoom(tier: PageTier, numPages: number): boolean;
}

const sizeOf = (memory: PageMemory, tier: PageTier): number | undefined =>
  (tier === 'float' ? memory : memory.packed)?.pageBytes;

/** The largest content of a page. */
export const maxContentBytes = ({ memory, states }: Pick<PageSpace, 'memory' | 'states'>): number =>
  Math.max(memory.pageBytes, memory.packed?.pageBytes ?? 0) + (states?.stateBytes ?? 0);

/** The content of a whole page, valid only while no step runs. */
export function contentOf({ memory, states }: Pick<PageSpace, 'memory' | 'states'>, page: KvPage): Uint8Array {
  const bytes = memory.bytesOf(page.tier, page.index);
  const checkpoint = states?.find(page);
  if (!states || checkpoint?.numTokens !== memory.pageTokens) return bytes;
  const content = new Uint8Array(bytes.length + states.stateBytes);
  content.set(bytes);
  content.set(states.bytesOf(checkpoint.index), bytes.length);
  return content;
}

/** Allocates a page with this content; null if it has another size, which means another page layout, or memory is lacking. */
export function placeContent({ memory, pool, states, makeRoom }: PageSpace, content: PageContent): KvPage | null {
  const pageBytes = sizeOf(memory, content.tier) ?? -1;
  const numStateBytes = content.bytes.length - pageBytes;
  if (numStateBytes !== 0 && numStateBytes !== states?.stateBytes) return null;
  if (!makeRoom(content.tier, 1)) return null;
  const page = pool.allocate(content.tier, 1)[0]!;
  memory.bytesOf(page.tier, page.index).set(content.bytes.subarray(0, pageBytes));
  const index = numStateBytes > 0 ? states!.tryTake() : null;
  if (index !== null) {
    states!.bytesOf(index).set(content.bytes.subarray(pageBytes));
    states!.attach(page, { index, numTokens: memory.pageTokens });
  }
  return page;
}
