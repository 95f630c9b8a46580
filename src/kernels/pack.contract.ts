import { afterAll, describe, expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { ARENA_ALIGNMENT, type KernelPackFactory } from './contract.ts';
import { describeAttentionEdges } from './pack-attention-edges.contract.ts';
import { describeAttention } from './pack-attention.contract.ts';
import { describeDistances } from './pack-distances.contract.ts';
import { describeElementwise } from './pack-elementwise.contract.ts';
import { describeEncoderOps } from './pack-encoder.contract.ts';
import { describeExperts } from './pack-experts.contract.ts';
import { describeExtremes } from './pack-extremes.contract.ts';
import { allTypes, disposeSharedPack, randomMatrix, withSmallPack } from './pack-fixture.contract.ts';
import { describeGraph } from './pack-graph.contract.ts';
import { describeLowRank } from './pack-low-rank.contract.ts';
import { describeMatmul } from './pack-matmul.contract.ts';
import { describePackedPages } from './pack-packed-pages.contract.ts';
import { describeFused } from './pack-fused.contract.ts';
import { describePrograms } from './pack-programs.contract.ts';
import { describeShapes } from './pack-shapes.contract.ts';
import { describeStates } from './pack-states.contract.ts';
import { describeStreams } from './pack-streams.contract.ts';
import { describeTopLogits } from './pack-top-logits.contract.ts';

/** The parts of the suite that need operations which a pack may refuse. */
export type OptionalPart = 'vectors' | 'states' | 'streams' | 'experts' | 'programs';

/**
 * The test suite of every kernel pack; a pack that refuses operations names the parts without them. `types`: those of the
 * matrices in the parts that go through all types.
 */
export function describeKernelPack(
  name: string,
  makeFactory: () => KernelPackFactory,
  refused: readonly OptionalPart[] = [],
  types: readonly TensorTypeName[] = allTypes,
): void {
  const has = (part: OptionalPart): boolean => !refused.includes(part);
  describe(name, () => {
    afterAll(disposeSharedPack);
    describeArena(makeFactory, types);
    describeElementwise(makeFactory);
    describeMatmul(makeFactory, types);
    describeShapes(makeFactory, types);
    describeFused(makeFactory);
    describeAttention(makeFactory);
    describePackedPages(makeFactory);
    describeLowRank(makeFactory);
    if (has('vectors')) describeDistances(makeFactory);
    if (has('vectors')) describeGraph(makeFactory);
    describeTopLogits(makeFactory);
    if (has('states')) describeStates(makeFactory);
    if (has('streams')) describeStreams(makeFactory);
    if (has('experts')) describeExperts(makeFactory);
    describeAttentionEdges(makeFactory);
    describeEncoderOps(makeFactory);
    describeExtremes(makeFactory, types);
    if (has('programs')) describePrograms(makeFactory);
  });
}

function describeArena(makeFactory: () => KernelPackFactory, types: readonly TensorTypeName[]): void {
  test('a pack has exactly the requested arena bytes, zeroed and aligned', async () => {
    const arenaBytes = 10 * ARENA_ALIGNMENT;
    await withSmallPack(
      makeFactory(),
      async ({ pack: { arena } }) => {
        const offsets = Array.from({ length: 10 }, (_, i) => arena.allocate(ARENA_ALIGNMENT - (i % 3), `part ${i}`));
        expect(offsets.every((offset) => offset % ARENA_ALIGNMENT === 0)).toBe(true);
        expect(new Set(offsets).size).toBe(10);
        expect(offsets.every((offset) => arena.u8(offset, ARENA_ALIGNMENT).every((byte) => byte === 0))).toBe(true);
        expect(() => arena.allocate(arena.sizeBytes, 'too much')).toThrowError(
          expect.objectContaining({ code: 'out_of_memory' }),
        );
      },
      { arenaBytes },
    );
  });

  test.each(types)('loadMatrix uses as many bytes as matrixBytes says for %s', async (type) => {
    const factory = makeFactory();
    await withSmallPack(factory, async ({ pack, matrix }) => {
      for (const [numRows, numCols] of [
        [1, 256],
        [5, 512],
        [16, 768],
        [33, 256],
      ] as const) {
        const before = pack.arena.usedBytes;
        const { bytes } = randomMatrix(type, numRows, numCols, 1);
        const weight = matrix(type, numRows, numCols, bytes);
        const expected = factory.matrixBytes(type, numRows, numCols);
        expect(weight).toMatchObject({ type, numRows, numCols, sizeBytes: expected });
        expect(pack.arena.usedBytes - before).toBe(Math.ceil(expected / ARENA_ALIGNMENT) * ARENA_ALIGNMENT);
      }
    });
  });

  const impossible: [TensorTypeName, number, number][] = [
    ['Q4_0', 2, 33],
    ['Q4_K', 2, 128],
    ['F32', 0, 4],
    ['F32', 4, 0],
    ['F16', -1, 4],
    ['F32', 1.5, 4],
    ['F32', 2 ** 40, 2 ** 40],
  ];
  test.each(impossible)('loadMatrix rejects %s of %d rows and %d columns without reading it', async (...shape) => {
    const [type, numRows, numCols] = shape;
    await withSmallPack(makeFactory(), async ({ pack }) => {
      const readInto = (): void => expect.fail('read');
      expect(() => pack.loadMatrix({ name: 'blk.0.odd', type, numRows, numCols, readInto })).toThrowError(
        expect.objectContaining({ code: 'invalid_model_file', message: expect.stringContaining('blk.0.odd') }),
      );
    });
  });

  test('loadMatrix reports both sizes if the arena is too small, and reads nothing', async () => {
    await withSmallPack(
      makeFactory(),
      async ({ pack }) => {
        const readInto = (): void => expect.fail('read');
        const source = { name: 'blk.0.big', type: 'F32' as const, numRows: 2 ** 12, numCols: 2 ** 12, readInto };
        expect(() => pack.loadMatrix(source)).toThrowError(
          expect.objectContaining({ code: 'out_of_memory', message: expect.stringContaining('blk.0.big') }),
        );
      },
      { arenaBytes: 2 ** 12 },
    );
  });
}
