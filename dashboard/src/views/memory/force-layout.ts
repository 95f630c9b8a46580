import type { GraphEdge, GraphNode } from '../../api/memory.ts';

/** Where a node is drawn, both from 0 to 1. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

const NUM_STEPS = 220;
/** How far a step may move a node at the beginning; it cools down to nothing. */
const FIRST_STEP = 0.12;

/**
 * Nodes that are linked pull, all push: the same graph always gives the same picture. The first node stays in the middle. Every pair is
 * looked at in every step, so this is for a neighbourhood, not for a whole memory.
 */
export function placeNodes(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): ReadonlyMap<string, Place> {
  const count = nodes.length;
  const index = new Map(nodes.map(({ id }, i) => [id, i]));
  // A spiral: no two begin at the same place, which would have no direction to part in.
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
        const push = (ideal * ideal) / Math.max(1e-6, px * px + py * py);
        dx[a]! += px * push;
        dy[a]! += py * push;
        dx[b]! -= px * push;
        dy[b]! -= py * push;
      }
    }
    for (const [a, b] of links) {
      const [px, py] = [x[a]! - x[b]!, y[a]! - y[b]!];
      const pull = Math.hypot(px, py) / ideal;
      dx[a]! -= px * pull;
      dy[a]! -= py * pull;
      dx[b]! += px * pull;
      dy[b]! += py * pull;
    }
    const most = FIRST_STEP * (1 - step / NUM_STEPS);
    for (let a = 1; a < count; a++) {
      const length = Math.hypot(dx[a]!, dy[a]!);
      if (length === 0) continue;
      const way = Math.min(most, length * 0.1) / length;
      x[a]! += dx[a]! * way;
      y[a]! += dy[a]! * way;
    }
  }
  const reach = Math.max(1e-6, ...x.map((value, i) => Math.max(Math.abs(value), Math.abs(y[i]!))));
  return new Map(nodes.map(({ id }, i) => [id, { x: 0.5 + (0.44 * x[i]!) / reach, y: 0.5 + (0.42 * y[i]!) / reach }]));
}
