import type { GraphEdge, GraphNode } from '../../api/memory.ts';

/** The position of a node, both coordinates from 0 to 1. */
export interface Position {
  readonly x: number;
  readonly y: number;
}

const NUM_STEPS = 220;
/** The maximum move of a node in the first step; it decreases linearly to 0. */
const INITIAL_STEP = 0.12;

/**
 * Deterministic force-directed layout: linked nodes attract, all nodes repel, and the first node stays in the centre. Every step visits
 * every pair, so it suits a neighbourhood, not a whole memory.
 */
export function placeNodes(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): ReadonlyMap<string, Position> {
  const count = nodes.length;
  const index = new Map(nodes.map(({ id }, i) => [id, i]));
  // Starts on a spiral, because two nodes at the same position would have no direction to separate in.
  const x = nodes.map((_, i) => Math.cos(i * 2.4) * Math.sqrt(i / count) * 0.5);
  const y = nodes.map((_, i) => Math.sin(i * 2.4) * Math.sqrt(i / count) * 0.5);
  const links = edges.flatMap(({ from, to }) => {
    const [a, b] = [index.get(from), index.get(to)];
    return a === undefined || b === undefined || a === b ? [] : [[a, b] as const];
  });
  const ideal = 0.9 / Math.sqrt(Math.max(1, count));
  for (let step = 0; step < NUM_STEPS; step++) {
    const dx = new Float64Array(count);
    const dy = new Float64Array(count);
    for (let a = 0; a < count; a++) {
      for (let b = a + 1; b < count; b++) {
        const [px, py] = [x[a]! - x[b]!, y[a]! - y[b]!];
        const repulsion = (ideal * ideal) / Math.max(1e-6, px * px + py * py);
        dx[a]! += px * repulsion;
        dy[a]! += py * repulsion;
        dx[b]! -= px * repulsion;
        dy[b]! -= py * repulsion;
      }
    }
    for (const [a, b] of links) {
      const [px, py] = [x[a]! - x[b]!, y[a]! - y[b]!];
      const attraction = Math.hypot(px, py) / ideal;
      dx[a]! -= px * attraction;
      dy[a]! -= py * attraction;
      dx[b]! += px * attraction;
      dy[b]! += py * attraction;
    }
    const maxMove = INITIAL_STEP * (1 - step / NUM_STEPS);
    for (let a = 1; a < count; a++) {
      const length = Math.hypot(dx[a]!, dy[a]!);
      if (length === 0) continue;
      const scale = Math.min(maxMove, length * 0.1) / length;
      x[a]! += dx[a]! * scale;
      y[a]! += dy[a]! * scale;
    }
  }
  const extent = Math.max(1e-6, ...x.map((value, i) => Math.max(Math.abs(value), Math.abs(y[i]!))));
  return new Map(
    nodes.map(({ id }, i) => [id, { x: 0.5 + (0.44 * x[i]!) / extent, y: 0.5 + (0.42 * y[i]!) / extent }]),
  );
}
