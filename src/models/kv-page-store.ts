import { assert, RuvLLMError } from '../core/errors.ts';
import {
  ARENA_ALIGNMENT,
  type ArenaRange,
  type KernelPack,
  kvLayerBytes,
  type KvPrecision,
  type KvRegion,
  type Offset,
  type PackedKvPrecision,
  PAGE_TOKENS,
} from '../kernels/contract.ts';
import type { RopeVariant } from './rope.ts';
import type { DecoderShape, KvPageStore } from './types.ts';

/** Pages packed by one operation; more take several. Enough to keep threads busy: an item is one head of one layer. */
export const MAX_PACK_MOVES = 256;

/** Packed pages may start at every cache line: their size is a whole number of lines. */
export const PACKED_UNIT_BYTES = ARENA_ALIGNMENT;

/** Page ids are int32, which limits the region in units of `PACKED_UNIT_BYTES`. */
export const MAX_PACKED_REGION_BYTES = 2 ** 31 * PACKED_UNIT_BYTES;

type KvShape = Pick<DecoderShape, 'numKvLayers' | 'numKvHeads' | 'headDim'>;

/** Bytes of K and V of `PAGE_TOKENS` tokens in all layers with attention. */
export function kvPageBytes({ numKvLayers, numKvHeads, headDim }: KvShape, precision: KvPrecision): number {
  return numKvLayers * kvLayerBytes(numKvHeads, headDim, precision);
}

/** The number of pages within a budget; 0 if not even one fits. */
export function numPagesWithin(budgetBytes: number, shape: KvShape, precision: KvPrecision = 'f16'): number {
  return Math.floor(budgetBytes / kvPageBytes(shape, precision));
}

/** The same memory as `kv`, as packed pages that start at any unit. */
export function packedRegion(kv: KvRegion, precision: PackedKvPrecision): KvRegion {
  return {
    ...kv,
    precision,
    pageBytes: PACKED_UNIT_BYTES,
    layerBytes: kvLayerBytes(kv.numKvHeads, kv.headDim, precision),
    numPages: (kv.numPages * kv.pageBytes) / PACKED_UNIT_BYTES,
  };
}

/** The first page id that would end beyond the region. */
export function endOfPackedPages(packed: KvRegion, numLayers: number): number {
  return packed.numPages - (numLayers * packed.layerBytes) / packed.pageBytes + 1;
}

/** The angles at one position identify a rotation: some models rotate differently for long contexts. */
function describeRopes(ropes: readonly RopeVariant[]): string {
  const sumOf = (values: Float64Array): number => values.reduce((sum, value, i) => sum + value * (i + 1), 0);
  return ropes.map(({ frequencies, magnitude }) => `${sumOf(frequencies)} ${magnitude}`).join(', ');
}

export interface KvPageStoreParts {
  readonly pack: KernelPack;
  readonly numLayers: number;
  readonly kv: KvRegion;
  readonly packed: KvRegion | null;
  readonly ropes: readonly RopeVariant[];
  /** int32[MAX_PACK_MOVES × 2], if there are packed pages. */
  readonly moves: Offset;
}

export function createKvPageStore({
  pack,
  numLayers,
  kv,
  packed,
  ropes,
  moves: buffer,
}: KvPageStoreParts): KvPageStore {
  const { arena } = pack;
  const packedBytes = packed === null ? 0 : numLayers * packed.layerBytes;
  const endOf = {
    float: kv.numPages,
    packed: packed === null ? 0 : endOfPackedPages(packed, numLayers),
  };
  const check = (tier: 'float' | 'packed', index: number): void =>
    assert(Number.isInteger(index) && index >= 0 && index < endOf[tier], `${tier} page ${index} of ${endOf[tier]}`);

  const placeOf = (tier: 'float' | 'packed', index: number): ArenaRange => {
    check(tier, index);
    if (tier === 'float') return { offset: kv.base + index * kv.pageBytes, sizeBytes: kv.pageBytes };
    return { offset: packed!.base + index * packed!.pageBytes, sizeBytes: packedBytes };
  };
  const viewOf = ({ offset, sizeBytes }: ArenaRange): Uint8Array => arena.u8(offset, sizeBytes);

  return {
    pageTokens: PAGE_TOKENS,
    computedBy: `${pack.name}; ropes ${describeRopes(ropes)}`,
    pageBytes: kv.pageBytes,
    packed:
      packed === null
        ? null
        : { precision: packed.precision as PackedKvPrecision, pageBytes: packedBytes, unitBytes: packed.pageBytes },
    async packPages(moves) {
      if (packed === null) throw new RuvLLMError('unsupported', 'this model was loaded without packed pages');
      for (const { from, to } of moves) {
        check('float', from);
        check('packed', to);
      }
      for (let first = 0; first < moves.length; first += MAX_PACK_MOVES) {
        const some = moves.slice(first, first + MAX_PACK_MOVES);
        arena.i32(buffer, some.length * 2).set(some.flatMap(({ from, to }) => [from, to]));
        const numPages = some.length;
        pack.packPages({ from: kv, to: packed, firstLayer: 0, numLayers, pages: buffer, numPages });
        await pack.sync([]);
      }
    },
    copyPage(tier, from, to) {
      const [source, target] = [placeOf(tier, from), placeOf(tier, to)];
      if (pack.copyBytes !== undefined) pack.copyBytes(source.offset, target.offset, source.sizeBytes);
      else viewOf(target).set(viewOf(source));
    },
    isReadable: pack.copyBytes === undefined,
    bytesOf: (tier, index) => viewOf(placeOf(tier, index)),
  };
}
