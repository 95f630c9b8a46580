import { assert, RuvLLMError } from '../core/errors.ts';
import {
  type ArenaRange,
  type KernelPack,
  type Offset,
  type PackedKvPrecision,
  PAGE_TOKENS,
} from '../kernels/contract.ts';
import { type KvGroup, PACKED_UNIT_BYTES } from './kv-layout.ts';
import type { RopeVariant } from './rope.ts';
import type { KvMemory, KvPageStore } from './types.ts';

/** Pages packed by one operation; more take several. Enough to keep threads busy: an item is one head of one layer. */
export const MAX_PACK_MOVES = 256;

/** The angles at one position identify a rotation: some models rotate differently for long contexts. */
function describeRopes(ropes: readonly RopeVariant[]): string {
  const sumOf = (values: Float64Array): number => values.reduce((sum, value, i) => sum + value * (i + 1), 0);
  return ropes.map(({ frequencies, magnitude }) => `${sumOf(frequencies)} ${magnitude}`).join(', ');
}

export interface KvPageStoreParts {
  readonly pack: KernelPack;
  readonly memory: KvMemory;
  /** The pages of layers on the GPU, in their own memory; null: none. */
  readonly gpu?: { readonly base: Offset; readonly unitBytes: number } | null;
  readonly groups: readonly KvGroup[];
  /** Null: no packed pages. */
  readonly packed: {
    readonly precision: PackedKvPrecision;
    readonly pageBytes: number;
    /** The first page id that would end beyond the memory. */
    readonly end: number;
  } | null;
  readonly ropes: readonly RopeVariant[];
  /** int32[MAX_PACK_MOVES × 2], if there are packed pages. */
  readonly moves: Offset;
}

export function createKvPageStore(parts: KvPageStoreParts): KvPageStore {
  const { pack, memory, gpu = null, groups, packed, ropes, moves: buffer } = parts;
  const { arena } = pack;
  const endOf = { float: memory.numPages, packed: packed?.end ?? 0 };
  const check = (tier: 'float' | 'packed', index: number): void =>
    assert(Number.isInteger(index) && index >= 0 && index < endOf[tier], `${tier} page ${index} of ${endOf[tier]}`);

  const placeOf = (tier: 'float' | 'packed', index: number): ArenaRange => {
    check(tier, index);
    if (tier === 'float') return { offset: memory.base + index * memory.pageBytes, sizeBytes: memory.pageBytes };
    return { offset: memory.base + index * PACKED_UNIT_BYTES, sizeBytes: packed!.pageBytes };
  };
  const viewOf = ({ offset, sizeBytes }: ArenaRange): Uint8Array => arena.u8(offset, sizeBytes);

  return {
    pageTokens: PAGE_TOKENS,
    computedBy: `${pack.name}; ropes ${describeRopes(ropes)}`,
    pageBytes: memory.pageBytes,
    packed:
      packed === null
        ? null
        : { precision: packed.precision, pageBytes: packed.pageBytes, unitBytes: PACKED_UNIT_BYTES },
    async packPages(moves) {
      if (packed === null) throw new RuvLLMError('unsupported', 'this model was loaded without packed pages');
      for (const { from, to } of moves) {
        check('float', from);
        check('packed', to);
      }
      for (let first = 0; first < moves.length; first += MAX_PACK_MOVES) {
        const some = moves.slice(first, first + MAX_PACK_MOVES);
        arena.i32(buffer, some.length * 2).set(some.flatMap(({ from, to }) => [from, to]));
        const pages = { pages: buffer, numPages: some.length };
        for (const { kv, packed: to, numLayers } of groups) {
          pack.packPages({ from: kv, to: to!, firstLayer: 0, numLayers, ...pages });
        }
        await pack.sync([]);
      }
    },
    copyPage(tier, from, to) {
      const [source, target] = [placeOf(tier, from), placeOf(tier, to)];
      if (pack.copyBytes !== undefined) {
        pack.copyBytes(source.offset, target.offset, source.sizeBytes);
        if (gpu === null) return;
        const inGpu = (bytes: number): number => (bytes / PACKED_UNIT_BYTES) * gpu.unitBytes;
        const placeInGpu = ({ offset }: ArenaRange): Offset => gpu.base + inGpu(offset - memory.base);
        pack.copyBytes(placeInGpu(source), placeInGpu(target), inGpu(source.sizeBytes));
      } else viewOf(target).set(viewOf(source));
    },
    isReadable: pack.copyBytes === undefined,
    bytesOf: (tier, index) => viewOf(placeOf(tier, index)),
  };
}
