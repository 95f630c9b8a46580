import { assert } from '../../src/core/errors.ts';
import type { KvPageStore } from '../../src/models/types.ts';

/** i32 token id + 256 * mark, i32 position; all bits set: nothing written. */
const FLOAT_SLOT_BYTES = 8;
/** u8 token id, u16 position + 1 + 16384 * mark: two float pages hold five packed ones and a bit, so tiers never line up. */
const PACKED_SLOT_BYTES = 3;
const UNIT_BYTES = 4;

/**
 * A slot's digest of all earlier tokens, which K and V of real models also depend on: two bits, so that a page used
 * after another prefix than its own shows in most slots.
 */
export function markAfter(mark: number, tokenId: number): number {
  return (Math.imul(mark * 64 + tokenId + 1, 0x9e3779b1) >>> 13) & 3;
}

export interface ToyPages {
  readonly store: KvPageStore;
  /** Stores a token of a sequence in its float page, with the mark of the tokens before it. */
  write(slot: number, tokenId: number, position: number, pageIds: ArrayLike<number>): void;
  /** The token ids of a sequence, through its page table; throws if a page holds another position. */
  readBack(pageIds: ArrayLike<number>, numTokens: number): number[];
  /** Runs `work`; forbidden operations throw meanwhile. */
  whileBusy<T>(what: string, work: () => Promise<T>): Promise<T>;
}

/** The pages of the toy model: one region of bytes shared by both tiers. */
export function createToyPages(numPages: number, pageTokens: number, isPacked: boolean): ToyPages {
  const pageBytes = pageTokens * FLOAT_SLOT_BYTES;
  const packedBytes = Math.ceil((pageTokens * PACKED_SLOT_BYTES) / UNIT_BYTES) * UNIT_BYTES;
  const region = new Uint8Array(numPages * pageBytes).fill(0xff);
  const view = new DataView(region.buffer);
  let busyWith: string | null = null;

  function rangeOf(tier: 'float' | 'packed', index: number): { start: number; end: number } {
    assert(tier === 'float' || isPacked, 'this toy model has no packed pages');
    const start = index * (tier === 'float' ? pageBytes : UNIT_BYTES);
    const end = start + (tier === 'float' ? pageBytes : packedBytes);
    assert(
      Number.isInteger(index) && start >= 0 && end <= region.length,
      `${tier} page ${index} takes the bytes ${start} to ${end} of ${region.length}`,
    );
    return { start, end };
  }

  interface Slot {
    readonly tokenId: number;
    readonly mark: number;
    readonly position: number;
  }

  function readSlot(entry: number, slot: number): Slot {
    if (entry >= 0) {
      const at = rangeOf('float', entry).start + slot * FLOAT_SLOT_BYTES;
      const word = view.getInt32(at, true);
      return { tokenId: word & 0xff, mark: (word >> 8) & 3, position: view.getInt32(at + 4, true) };
    }
    const at = rangeOf('packed', ~entry).start + slot * PACKED_SLOT_BYTES;
    const word = view.getUint16(at + 1, true);
    return { tokenId: region[at]!, mark: word >> 14, position: (word & 0x3fff) - 1 };
  }

  const readToken = (pageIds: ArrayLike<number>, position: number): Slot =>
    readSlot(pageIds[Math.floor(position / pageTokens)]!, position % pageTokens);

  function packPage(from: number, to: number): void {
    const slots = Array.from({ length: pageTokens }, (_, slot) => readSlot(from, slot));
    const { start } = rangeOf('packed', to);
    for (const [slot, { tokenId, mark, position }] of slots.entries()) {
      assert(position >= 0 && position < 0x3fff, `slot ${slot} of page ${from} is packed with position ${position}`);
      region[start + slot * PACKED_SLOT_BYTES] = tokenId;
      view.setUint16(start + slot * PACKED_SLOT_BYTES + 1, position + 1 + (mark << 14), true);
    }
  }

  async function whileBusy<T>(what: string, work: () => Promise<T>): Promise<T> {
    assert(busyWith === null, `${what} began during ${busyWith}`);
    busyWith = what;
    try {
      return await work();
    } finally {
      busyWith = null;
    }
  }

  const bytesOf = (tier: 'float' | 'packed', index: number): Uint8Array => {
    assert(busyWith === null, `the bytes of a page were asked for during ${busyWith}`);
    const { start, end } = rangeOf(tier, index);
    return region.subarray(start, end);
  };

  return {
    whileBusy,
    store: {
      pageTokens,
      computedBy: 'toy',
      pageBytes,
      packed: isPacked ? { precision: 'q8', pageBytes: packedBytes, unitBytes: UNIT_BYTES } : null,
      packPages(moves) {
        return whileBusy('packing', async () => {
          const ranges = moves.flatMap(({ from, to }) => [
            { name: `float page ${from}`, ...rangeOf('float', from) },
            { name: `packed page ${to}`, ...rangeOf('packed', to) },
          ]);
          // Threads of a kernel pack read and write in any order: overlapping pages would be right only here.
          ranges.sort((a, b) => a.start - b.start);
          for (const [index, { name, start }] of ranges.entries()) {
            const before = ranges[index - 1];
            assert(before === undefined || before.end <= start, `${name} overlaps ${before?.name}`);
          }
          // Later than the call, so that a page released before this resolves is detected.
          await new Promise((resolve) => setImmediate(resolve));
          for (const { from, to } of moves) packPage(from, to);
        });
      },
      copyPage: (tier, from, to) => bytesOf(tier, to).set(bytesOf(tier, from)),
      isReadable: true,
      bytesOf,
    },
    write(slot, tokenId, position, pageIds) {
      assert(tokenId >= 0 && tokenId <= 0xff, `token ${tokenId} is kept in one byte`);
      const mark = markAfter(position === 0 ? 0 : readToken(pageIds, position - 1).mark, tokenId);
      const { start } = rangeOf('float', Math.floor(slot / pageTokens));
      const at = start + (slot % pageTokens) * FLOAT_SLOT_BYTES;
      view.setInt32(at, tokenId + (mark << 8), true);
      view.setInt32(at + 4, position, true);
    },
    readBack(pageIds, numTokens) {
      let expected = 0;
      return Array.from({ length: numTokens }, (_, index) => {
        const entry = pageIds[Math.floor(index / pageTokens)]!;
        const { tokenId, mark, position } = readToken(pageIds, index);
        expected = markAfter(expected, tokenId);
        const page = entry < 0 ? `packed page ${~entry}` : `page ${entry}`;
        assert(
          position === index,
          `slot ${index % pageTokens} of ${page} holds position ${position}, expected ${index}`,
        );
        assert(mark === expected, `slot ${index % pageTokens} of ${page} was computed behind other tokens`);
        return tokenId;
      });
    },
  };
}
