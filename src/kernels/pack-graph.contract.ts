import { describe, expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import {
  graphLaneBytes,
  type KernelPackFactory,
  MAX_GRAPH_DEGREE,
  MAX_GRAPH_WIDTH,
  type VectorTable,
} from './contract.ts';
import { type PackFixture, withSmallPack } from './pack-fixture.contract.ts';

type Metric = VectorTable['metric'];
type Format = VectorTable['format'];
const cases = (['dot', 'l2'] as const).flatMap((metric) => (['f32', 'int8'] as const).map((f) => [metric, f] as const));

/** Integers: sums do not depend on their order, and many distances are equal. */
const wholes = (length: number, seed: number): number[] => {
  const random = createRandom(seed);
  return Array.from({ length }, () => Math.floor(random.next() * 7) - 3);
};

interface World {
  readonly dim: number;
  readonly rows: readonly (readonly number[])[];
  readonly levels: readonly number[];
  /** By level and node. */
  readonly links: readonly (readonly (readonly number[])[])[];
}

const DEGREE = 6;
const UPPER_DEGREE = 3;

function makeWorld(numNodes: number, dim: number, seed: number): World {
  const random = createRandom(seed);
  const pickNode = (among: readonly number[]): number => among[Math.floor(random.next() * among.length)]!;
  const levels = Array.from({ length: numNodes }, (_, i) => (i % 16 === 3 ? 2 : i % 4 === 3 ? 1 : 0));
  const values = wholes(numNodes * dim, seed + 1);
  const links = [0, 1, 2].map((level) => {
    const nodes = levels.flatMap((top, node) => (top >= level ? [node] : []));
    return levels.map((top) => {
      if (top < level) return [];
      const length = Math.floor(random.next() * ((level === 0 ? DEGREE : UPPER_DEGREE) + 1));
      return Array.from({ length }, () => pickNode(nodes));
    });
  });
  const rows = Array.from({ length: numNodes }, (_, i) => values.slice(i * dim, (i + 1) * dim));
  return { dim, rows, levels, links };
}

const scoreOf = (metric: Metric, x: readonly number[], y: readonly number[]): number =>
  x.reduce((sum, value, i) => sum + (metric === 'dot' ? value * y[i]! : -((value - y[i]!) ** 2)), 0);

type Near = { id: number; score: number };
const nearFirst = (a: Near, b: Near): number => b.score - a.score || a.id - b.id;

/** As the contract defines it: expands the best unexpanded node until there is none. */
function searchPlainly(world: World, metric: Metric, query: readonly number[], level: number, width: number): Near[] {
  const near = (id: number): Near => ({ id, score: scoreOf(metric, query, world.rows[id]!) });
  let start = near(3);
  for (let above = 2; above > level; above--) {
    for (;;) {
      const best = [start, ...world.links[above]![start.id]!.map(near)].toSorted(nearFirst)[0]!;
      if (best.id === start.id) break;
      start = best;
    }
  }
  let pool = [start];
  const expanded = new Set<number>();
  const visited = new Set([start.id]);
  for (let next: Near | undefined = start; next; next = pool.find(({ id }) => !expanded.has(id))) {
    expanded.add(next.id);
    for (const id of world.links[level]![next.id]!) {
      if (visited.has(id)) continue;
      visited.add(id);
      pool.push(near(id));
    }
    pool = pool.toSorted(nearFirst).slice(0, width);
  }
  return pool;
}

function putWorld({ pack, put, putInts }: PackFixture, world: World, metric: Metric, format: Format) {
  const { dim, rows, levels } = world;
  const values = rows.flat();
  const bytesAt = pack.arena.allocate(values.length, 'bytes');
  pack.arena.u8(bytesAt, values.length).set(values);
  const table: VectorTable = {
    vectors: format === 'f32' ? put(values) : bytesAt,
    dim,
    format,
    scales: format === 'f32' ? null : put(rows.map(() => 1)),
    metric,
  };
  const padded = (links: readonly number[], degree: number): number[] => [
    ...links,
    ...Array.from({ length: degree - links.length }, () => -1),
  ];
  const upper: number[] = [];
  const upperAt = levels.map((level, node) => {
    const first = upper.length / UPPER_DEGREE;
    for (let l = 1; l <= level; l++) upper.push(...padded(world.links[l]![node]!, UPPER_DEGREE));
    return level === 0 ? -1 : first;
  });
  const laneBytes = graphLaneBytes(rows.length, 64, DEGREE);
  return {
    table,
    lanes: { at: pack.arena.allocate(2 * laneBytes, 'lanes'), laneBytes, numNodes: rows.length },
    graph: {
      links: putInts(world.links[0]!.flatMap((links) => padded(links, DEGREE))),
      degree: DEGREE,
      upper: putInts(upper),
      upperDegree: UPPER_DEGREE,
      upperAt: putInts(upperAt),
    },
  };
}

/** A query with the largest value 127, so that rounding to bytes changes nothing. */
const queryOf = (dim: number, seed: number): number[] => [127, ...wholes(dim - 1, seed)];

export function describeGraph(makeFactory: () => KernelPackFactory): void {
  describe('graphs of vectors', () => {
    test.each(cases)('searchGraph, %s of %s: follows the contract, including ties', async (metric, format) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, put, output } = fixture;
        for (const [numNodes, dim] of [
          [60, 5],
          [200, 19],
          [300, 67],
        ] as const) {
          const world = makeWorld(numNodes, dim, numNodes);
          const { table, lanes, graph } = putWorld(fixture, world, metric, format);
          const queries = Array.from({ length: 9 }, (_, i) => queryOf(dim, i));
          for (const [level, width] of [
            [0, 1],
            [0, 8],
            [0, 64],
            [1, 5],
            [2, 3],
          ] as const) {
            const ids = output(queries.length * width);
            const scores = output(queries.length * width);
            pack.searchGraph({
              table,
              lanes,
              ...graph,
              queries: put(queries.flat()),
              numQueries: queries.length,
              entry: 3,
              topLevel: 2,
              level,
              width,
              ids: ids.offset,
              scores: scores.offset,
            });
            const [bits, actualScores] = [new Int32Array((await ids.read()).buffer), await scores.read()];
            queries.forEach((query, i) => {
              const expected = searchPlainly(world, metric, query, level, width);
              const numFree = width - expected.length;
              const range = [i * width, (i + 1) * width] as const;
              const what = `${numNodes} nodes, query ${i}, level ${level}, width ${width}`;
              const ids = [...expected.map(({ id }) => id), ...Array.from({ length: numFree }, () => -1)];
              expect(Array.from(bits.slice(...range)), what).toEqual(ids);
              const scores = [
                ...expected.map(({ score }) => score),
                ...Array.from({ length: numFree }, () => -Infinity),
              ];
              expect(
                Array.from(actualScores.slice(...range), (score) => score + 0),
                what,
              ).toEqual(scores);
            });
          }
        }
      });
    });

    test('searchGraph gives the same result alone, in a batch, and after 70 000 searches', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, put, output } = fixture;
        const world = makeWorld(20, 4, 1);
        const { table, lanes, graph } = putWorld(fixture, world, 'dot', 'f32');
        const numQueries = 5000;
        const one = queryOf(4, 5);
        const queries = put(Array.from({ length: numQueries }, () => one).flat());
        const width = 4;
        const expected = searchPlainly(world, 'dot', one, 0, width).map(({ id }) => id);
        const rounds = makeFactory().name === 'reference' ? 1 : 14;
        for (let round = 0; round < rounds; round++) {
          const ids = output(numQueries * width);
          const scores = output(numQueries * width);
          const op = { table, lanes, ...graph, queries, entry: 3, topLevel: 2, level: 0, width };
          pack.searchGraph({ ...op, numQueries, ids: ids.offset, scores: scores.offset });
          const all = [...new Int32Array((await ids.read()).buffer)];
          expect(all).toEqual(Array.from({ length: numQueries }, () => expected).flat());
          pack.searchGraph({ ...op, numQueries: 1, ids: ids.offset, scores: scores.offset });
          pack.finish!();
          expect([...pack.arena.i32(ids.offset, width)]).toEqual(expected);
        }
      });
    });

    test.each(cases)(
      'pickLinks, %s of %s: takes near nodes in different directions, each once',
      async (metric, format) => {
        await withSmallPack(makeFactory(), async (fixture) => {
          const { pack, putInts, output } = fixture;
          const world = makeWorld(150, 21, 9);
          const { table, lanes } = putWorld(fixture, world, metric, format);
          const random = createRandom(4);
          const lists = Array.from({ length: 40 }, (_, i) => ({
            node: i,
            ids: Array.from({ length: i * 2 }, () => Math.floor(random.next() * 150)), // with duplicates and the node itself
          }));
          const first = lists.map((_, i) => lists.slice(0, i).reduce((sum, { ids }) => sum + ids.length, 0));
          const words = lists.flatMap(({ node, ids }, i) => [node, first[i]!, ids.length]);
          for (const isFilled of [false, true]) {
            for (const [width, degree] of [
              [64, 6],
              [20, 5],
              [3, 6],
            ] as const) {
              const out = output(lists.length * degree);
              const at = {
                lists: putInts(words),
                candidates: putInts(lists.flatMap(({ ids }) => ids)),
                out: out.offset,
              };
              pack.pickLinks({ table, lanes, ...at, numLists: lists.length, width, degree, isFilled });
              const picked = new Int32Array((await out.read()).buffer);
              lists.forEach(({ node, ids }, i) => {
                const expected = pickPlainly(world, metric, node, ids, width, degree, isFilled);
                const padding = Array.from({ length: degree - expected.length }, () => -1);
                const row = Array.from(picked.subarray(i * degree, (i + 1) * degree));
                expect(row, `list ${i}, width ${width}, ${isFilled}`).toEqual([...expected, ...padding]);
              });
            }
          }
        });
      },
    );

    test('a vector with a NaN score is farthest', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, put, putInts, output } = fixture;
        const rows = [
          [1, 1],
          [NaN, 1],
          [2, 1],
          [Infinity, -Infinity],
        ];
        const laneBytes = graphLaneBytes(4, 4, 4);
        const [ids, scores] = [output(4), output(4)];
        pack.searchGraph({
          table: {
            vectors: put(rows.flat()),
            dim: 2,
            format: 'f32',
            scales: null,
            metric: 'dot',
          },
          lanes: {
            at: pack.arena.allocate(2 * laneBytes, 'lanes'),
            laneBytes,
            numNodes: 4,
          },
          links: putInts([1, 2, 3, -1, 0, 2, 3, -1, 1, 0, 3, -1, 0, 1, 2, -1]),
          degree: 4,
          upper: putInts([-1]),
          upperDegree: 1,
          upperAt: putInts([-1, -1, -1, -1]),
          queries: put([1, 1]),
          numQueries: 1,
          entry: 1,
          topLevel: 0,
          level: 0,
          width: 4,
          ids: ids.offset,
          scores: scores.offset,
        });
        expect([...new Int32Array((await ids.read()).buffer)]).toEqual([2, 0, 1, 3]);
        expect([...(await scores.read())]).toEqual([3, 2, -Infinity, -Infinity]);
      });
    });

    test('rejects widths, degrees and lanes out of range', async () => {
      await withSmallPack(makeFactory(), async ({ pack }) => {
        const table: VectorTable = { vectors: 64, dim: 1, format: 'f32', scales: null, metric: 'dot' };
        const lanes = { at: 64, laneBytes: graphLaneBytes(1, MAX_GRAPH_WIDTH, MAX_GRAPH_DEGREE), numNodes: 1 };
        const op = {
          table,
          lanes,
          lists: 64,
          numLists: 0,
          candidates: 64,
          width: 1,
          degree: 1,
          isFilled: false,
          out: 64,
        };
        const refusal = (code: string): unknown => expect.objectContaining({ code });
        for (const width of [0, MAX_GRAPH_WIDTH + 1]) {
          expect(() => pack.pickLinks({ ...op, width })).toThrowError(refusal('unsupported'));
        }
        expect(() => pack.pickLinks({ ...op, degree: MAX_GRAPH_DEGREE + 1 })).toThrowError(refusal('unsupported'));
        const short = { ...lanes, laneBytes: 64 };
        expect(() => pack.pickLinks({ ...op, lanes: short })).toThrowError(refusal('internal'));
      });
    });
  });
}

function pickPlainly(
  { rows }: World,
  metric: Metric,
  node: number,
  ids: readonly number[],
  width: number,
  degree: number,
  isFilled: boolean,
): number[] {
  const near = [...new Set(ids)]
    .filter((id) => id !== node)
    .map((id) => ({ id, score: scoreOf(metric, rows[node]!, rows[id]!) }))
    .toSorted(nearFirst)
    .slice(0, width);
  const picked: number[] = [];
  for (const { id, score } of near) {
    if (picked.length === degree) break;
    if (picked.every((other) => scoreOf(metric, rows[id]!, rows[other]!) <= score)) picked.push(id);
  }
  const others = isFilled ? near.map(({ id }) => id).filter((id) => !picked.includes(id)) : [];
  return [...picked, ...others].slice(0, degree);
}
