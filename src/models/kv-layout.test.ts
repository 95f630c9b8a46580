import { expect, test } from 'vitest';
import { kvLayerBytes } from '../kernels/contract.ts';
import { endOfPackedPages, kvPageBytes, numPagesWithin, PACKED_UNIT_BYTES, placeKvLayers } from './kv-layout.ts';
import type { LayerSizes } from './types.ts';

const size = (numKvHeads: number, headDim: number): LayerSizes => ({ numKvHeads, headDim, feedForwardDim: 1 });
const EVEN = { numKvLayers: 3, numKvHeads: 2, headDim: 64 };
/** The last layer has no pages. */
const MIXED = {
  numKvLayers: 4,
  numKvHeads: 2,
  headDim: 128,
  layerSizes: [size(2, 64), size(1, 128), size(2, 64), size(1, 128), size(2, 64)],
};
const [LOCAL, GLOBAL] = [kvLayerBytes(2, 64, 'f16'), kvLayerBytes(1, 128, 'f16')];
const PLAIN = { precision: 'f16', packedPrecision: null } as const;

test('layers of one size are one group, in their order', () => {
  const memory = { base: 4096, pageBytes: 3 * LOCAL, numPages: 5 };
  const { groups, layers } = placeKvLayers(EVEN, memory, PLAIN);
  const kv = { ...memory, layerBytes: LOCAL, numKvHeads: 2, headDim: 64, precision: 'f16' };
  expect(groups).toEqual([{ kv, packed: null, numLayers: 3 }]);
  expect(layers).toEqual([0, 1, 2].map((layer) => ({ kv, packed: null, layer })));
});

test('layers of the same size lie together in a page, each inside it and apart from the others', () => {
  expect(kvPageBytes(MIXED, 'f16')).toBe(2 * LOCAL + 2 * GLOBAL);
  const memory = { base: 4096, pageBytes: 2 * LOCAL + 2 * GLOBAL, numPages: 5 };
  const { groups, layers } = placeKvLayers(MIXED, memory, { precision: 'f16', packedPrecision: 'q8' });
  expect(groups.map(({ kv, numLayers }) => [kv.base, kv.headDim, numLayers])).toEqual([
    [4096, 64, 2],
    [4096 + 2 * LOCAL, 128, 2],
  ]);
  expect(layers.map(({ kv, layer }) => kv.base + layer * kv.layerBytes - 4096)).toEqual([
    0,
    2 * LOCAL,
    LOCAL,
    2 * LOCAL + GLOBAL,
  ]);
  const packedBytes = [kvLayerBytes(2, 64, 'q8'), kvLayerBytes(1, 128, 'q8')] as const;
  expect(groups.map(({ packed }) => [packed!.base, packed!.layerBytes, packed!.pageBytes])).toEqual([
    [4096, packedBytes[0], PACKED_UNIT_BYTES],
    [4096 + 2 * packedBytes[0], packedBytes[1], PACKED_UNIT_BYTES],
  ]);
  expect(groups[0]!.packed!.numPages).toBe((5 * memory.pageBytes) / PACKED_UNIT_BYTES);
});

test('counts pages of mixed layers in a budget, and the last start of a packed page', () => {
  const pageBytes = kvPageBytes(MIXED, 'f16');
  expect(numPagesWithin(7 * pageBytes, MIXED)).toBe(7);
  expect(numPagesWithin(7 * pageBytes - 1, MIXED)).toBe(6);
  const end = endOfPackedPages(MIXED, { base: 0, pageBytes, numPages: 3 }, 'q4');
  expect((end - 1) * PACKED_UNIT_BYTES + kvPageBytes(MIXED, 'q4')).toBe(3 * pageBytes);
});
