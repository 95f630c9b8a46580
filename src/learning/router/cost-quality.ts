/** Quality and cost of each candidate on the requests of a test, and what a policy believes: rows by request, columns by candidate. */
export interface CurveData {
  readonly estimates: readonly Float64Array[];
  readonly outcomes: readonly Float32Array[];
  /** Of one request, by candidate, the same for all requests. */
  readonly costs: readonly number[];
}

export interface CurvePoint {
  readonly cost: number;
  readonly quality: number;
}

/** Mixing two settings of the trade-off at random lies on the line between them. */
function between(a: CurvePoint, b: CurvePoint | undefined, cost: number): number {
  if (b === undefined || cost <= a.cost) return a.quality;
  return a.quality + ((b.quality - a.quality) * (cost - a.cost)) / (b.cost - a.cost);
}

function qualityAt(points: readonly CurvePoint[], cost: number): number {
  let at = 0;
  while (at + 1 < points.length && points[at + 1]!.cost <= cost) at += 1;
  return between(points[at]!, points[at + 1], cost);
}

const NUM_BUDGETS = 101;

/** Best mixture of fixed candidates for each budget: what one can have without looking at the request. */
export function hullOf(means: ArrayLike<number>, costs: readonly number[]): CurvePoint[] {
  const points = costs.map((cost, i) => ({ quality: means[i]!, cost })).sort((a, b) => a.cost - b.cost || b.quality - a.quality); // prettier-ignore
  const hull: CurvePoint[] = [];
  for (const point of points) {
    if (hull.length > 0 && point.quality <= hull.at(-1)!.quality) continue;
    while (hull.length > 1) {
      const [a, b] = [hull.at(-2)!, hull.at(-1)!];
      if ((b.quality - a.quality) * (point.cost - a.cost) > (point.quality - a.quality) * (b.cost - a.cost)) break;
      hull.pop();
    }
    hull.push(point);
  }
  return hull;
}

interface Switch {
  readonly row: number;
  /** Estimated quality per unit of cost: at a lower price than this the dearer candidate is taken. */
  readonly price: number;
  readonly cost: number;
  readonly quality: number;
}

/** From the cheapest candidate up, each step to the one that promises most per cost, as long as it promises anything. */
function switchesOf(
  row: number,
  estimate: Float64Array,
  outcome: Float32Array,
  costs: readonly number[],
  start: number,
): Switch[] {
  // prettier-ignore
  const switches: Switch[] = [];
  for (let chosen = start; ;) {
    let next = -1;
    let price = 0;
    for (let other = 0; other < costs.length; other++) {
      const extra = costs[other]! - costs[chosen]!;
      if (extra <= 0) continue;
      const gained = (estimate[other]! - estimate[chosen]!) / extra;
      if (gained > price) [price, next] = [gained, other];
    }
    if (next < 0) return switches;
    switches.push({ row, price, cost: costs[next]! - costs[chosen]!, quality: outcome[next]! - outcome[chosen]! });
    chosen = next;
  }
}

/** A curve whose requests can be counted again and again, as a bootstrap does. */
export interface PreparedCurve {
  readonly numRows: number;
  /** `counts`: multiplicity of each request. Default 1. */
  curve(counts?: Float64Array): CurvePoint[];
  /** Mean over all budgets of the quality of the curve less that of the best blind mixture, in units of quality. */
  area(counts?: Float64Array): number;
  /** Quality of the curve and of the best blind mixture at one budget: `share` 0 is the cheapest candidate, 1 the dearest. */
  at(share: number, counts?: Float64Array): { readonly quality: number; readonly blind: number };
}

/** Every setting of argmax(estimate − price · cost), from the highest price to 0: exact, no grid of prices. */
export function prepareCurve({ estimates, outcomes, costs }: CurveData): PreparedCurve {
  const numRows = estimates.length;
  const start = costs.indexOf(Math.min(...costs));
  const [low, high] = [costs[start]!, Math.max(...costs)];
  const switches = estimates
    .flatMap((estimate, row) => switchesOf(row, estimate, outcomes[row]!, costs, start))
    .sort((a, b) => b.price - a.price);
  // Columns, because a bootstrap scans them thousands of times.
  const rows = Int32Array.from(switches, ({ row }) => row);
  const extraCosts = Float64Array.from(switches, ({ cost }) => cost);
  const gains = Float64Array.from(switches, ({ quality }) => quality);
  // Equal prices switch together: any order among them would be arbitrary.
  const isTogether = Uint8Array.from(switches, ({ price }, at) => +(switches[at + 1]?.price === price));
  const table = new Float64Array(numRows * costs.length);
  outcomes.forEach((row, i) => table.set(row, i * costs.length));
  const once = new Float64Array(numRows).fill(1);

  const meansOf = (counts: Float64Array): { means: Float64Array; total: number } => {
    const means = new Float64Array(costs.length);
    let total = 0;
    for (let row = 0, at = 0; row < numRows; row++) {
      total += counts[row]!;
      for (let i = 0; i < means.length; i++, at++) means[i]! += counts[row]! * table[at]!;
    }
    for (let i = 0; i < means.length; i++) means[i]! /= total;
    return { means, total };
  };
  /** Calls `see` with every point of the curve, cheapest first. */
  const walk = (
    counts: Float64Array,
    first: number,
    total: number,
    see: (cost: number, quality: number) => void,
  ): void => {
    let [cost, quality] = [total * low, total * first];
    see(low, first);
    for (let at = 0; at < rows.length; at++) {
      cost += counts[rows[at]!]! * extraCosts[at]!;
      quality += counts[rows[at]!]! * gains[at]!;
      if (isTogether[at] === 0) see(cost / total, quality / total);
    }
  };
  const curve = (counts: Float64Array = once): CurvePoint[] => {
    const { means, total } = meansOf(counts);
    const points: CurvePoint[] = [];
    walk(counts, means[start]!, total, (cost, quality) => points.push({ cost, quality }));
    return points;
  };
  return {
    numRows,
    curve,
    at(share, counts = once) {
      const budget = low + (high - low) * share;
      const hull = hullOf(meansOf(counts).means, costs);
      return { quality: qualityAt(curve(counts), budget), blind: qualityAt(hull, budget) };
    },
    area(counts = once) {
      const { means, total } = meansOf(counts);
      const hull = hullOf(means, costs);
      const budgetAt = (i: number): number => low + ((high - low) * i) / (NUM_BUDGETS - 1);
      let [sum, next] = [0, 0];
      const last = { cost: low, quality: means[start]! };
      walk(counts, means[start]!, total, (cost, quality) => {
        // A point ends the line on which the budgets before it lie.
        for (; next < NUM_BUDGETS && budgetAt(next) < cost; next++) {
          const budget = budgetAt(next);
          const share = (budget - last.cost) / (cost - last.cost);
          sum += last.quality + share * (quality - last.quality) - qualityAt(hull, budget);
        }
        last.cost = cost;
        last.quality = quality;
      });
      for (; next < NUM_BUDGETS; next++) sum += last.quality - qualityAt(hull, budgetAt(next));
      return sum / NUM_BUDGETS;
    },
  };
}
