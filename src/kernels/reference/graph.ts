import type { Arena, PickLinksOp, SearchGraphOp, VectorTable } from '../contract.ts';
import { checkDistances, checkGraph } from '../op-limits.ts';
import { distance, readVector, roundQuery } from './distances.ts';

interface Near {
  readonly id: number;
  readonly score: number;
  isDone: boolean;
}

const byNearness = (a: Near, b: Near): number => b.score - a.score || a.id - b.id || 0;

function near(arena: Arena, table: VectorTable, from: ArrayLike<number>, id: number): Near {
  const result = distance(table.metric, from, readVector(arena, table, id));
  const score = table.metric === 'l2' ? -result : result;
  return { id, score: score > -Infinity ? score : -Infinity, isDone: false };
}

export function searchGraph(arena: Arena, op: SearchGraphOp): void {
  const { table, degree, upperDegree, width, lanes } = op;
  checkDistances(table);
  checkGraph(width, Math.max(degree, upperDegree), lanes);
  const upperAt = arena.i32(op.upperAt, lanes.numNodes);
  const linksOf = (id: number, level: number): number[] => {
    const upperRow = upperAt[id]! + level - 1;
    const row =
      level === 0
        ? arena.i32(op.links + id * degree * 4, degree)
        : arena.i32(op.upper + upperRow * upperDegree * 4, upperDegree);
    const end = row.indexOf(-1);
    return Array.from(end < 0 ? row : row.subarray(0, end));
  };

  for (let i = 0; i < op.numQueries; i++) {
    const raw = arena.f32(op.queries + i * table.dim * 4, table.dim);
    const query = table.format === 'int8' ? roundQuery(raw) : raw;
    const score = (id: number): Near => near(arena, table, query, id);
    let nearest = score(op.entry);
    for (let level = op.topLevel; level > op.level; level--) {
      for (let from: Near | null = null; from?.id !== nearest.id;) {
        from = nearest;
        nearest = [from, ...linksOf(from.id, level).map(score)].toSorted(byNearness)[0]!;
      }
    }
    let pool = [nearest];
    const visited = new Set([nearest.id]);
    for (let next: Near | undefined = nearest; next !== undefined; next = pool.find(({ isDone }) => !isDone)) {
      next.isDone = true;
      const fresh = new Set(linksOf(next.id, op.level).filter((id) => !visited.has(id)));
      for (const id of fresh) visited.add(id);
      pool = [...pool, ...[...fresh].map(score)].toSorted(byNearness).slice(0, width);
    }
    const ids = arena.i32(op.ids + i * width * 4, width).fill(-1);
    const scores = arena.f32(op.scores + i * width * 4, width).fill(-Infinity);
    pool.forEach(({ id, score }, j) => ((ids[j] = id), (scores[j] = score)));
  }
}

export function pickLinks(arena: Arena, op: PickLinksOp): void {
  const { table, width, degree, lanes } = op;
  checkDistances(table);
  checkGraph(width, degree, lanes);
  for (let i = 0; i < op.numLists; i++) {
    const [node, first, count] = [...arena.i32(op.lists + i * 12, 3)] as [number, number, number];
    const nodeVector = readVector(arena, table, node);
    const ids = new Set(arena.i32(op.candidates + first * 4, count));
    ids.delete(node);
    const candidates = [...ids].map((id) => near(arena, table, nodeVector, id)).toSorted(byNearness).slice(0, width); // prettier-ignore
    const picked: Near[] = [];
    for (const candidate of candidates) {
      if (picked.length === degree) break;
      const vector = readVector(arena, table, candidate.id);
      candidate.isDone = picked.every(({ id }) => near(arena, table, vector, id).score <= candidate.score);
      if (candidate.isDone) picked.push(candidate);
    }
    const others = op.isFilled ? candidates.filter(({ isDone }) => !isDone) : [];
    const links = [...picked, ...others].slice(0, degree);
    arena.i32(op.out + i * degree * 4, degree).fill(-1).set(links.map(({ id }) => id)); // prettier-ignore
  }
}
