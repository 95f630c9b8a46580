import { assert } from '../core/errors.ts';
import { MAX_RANK, type Offset } from '../kernels/contract.ts';
import type { DecoderStep, StepDelta, AdapterSites } from './decoder-step.ts';
import type { AdapterWeights, StepBatch } from './types.ts';
import type { Projection } from './weight-loader.ts';
import { MAX_STACKED_ADAPTERS } from './types.ts';

export type AdapterSlots = Map<number, AdapterSites>;

/** Weights by site; a rank above the limit is a bug of the caller. */
export function indexWeights(weights: readonly AdapterWeights[]): AdapterSites {
  const sites = new Map<string, AdapterWeights>();
  for (const entry of weights) {
    const { site, parts } = entry;
    assert(!sites.has(site), `two sets of weights for ${site}`);
    for (const { rank } of parts) assert(rank >= 1 && rank <= MAX_RANK, `${site} of rank ${rank}, limit ${MAX_RANK}`);
    sites.set(site, entry);
  }
  return sites;
}

/** Row lists must fit their buffers, and an operation may not contain a row twice. */
export function checkAdapters({ adapters = [], tokenIds }: StepBatch, slots: AdapterSlots): void {
  const numRows = tokenIds.length;
  const perRow = new Uint8Array(numRows);
  for (const { slot, rows, scale } of adapters) {
    assert(slots.has(slot), `no adapter in slot ${slot}`);
    assert(Number.isFinite(scale), `adapter ${slot} is scaled by ${scale}`);
    const distinctRows = new Set<number>();
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      assert(Number.isInteger(row) && row >= 0 && row < numRows, `adapter ${slot} for row ${row} of ${numRows}`);
      assert(!distinctRows.has(row), `adapter ${slot} twice for row ${row}`);
      assert(++perRow[row]! <= MAX_STACKED_ADAPTERS, `more than ${MAX_STACKED_ADAPTERS} adapters for row ${row}`);
      distinctRows.add(row);
    }
  }
}

/** Writes the row lists of a checked batch into the arena; null if there are none. */
export function writeAdapters(
  { pack, buffers }: Pick<DecoderStep, 'pack' | 'buffers'>,
  { adapters = [], logitRows }: StepBatch,
  slots: AdapterSlots,
): readonly StepDelta[] | null {
  if (adapters.length === 0) return null;
  const places = Array.from(logitRows);
  let next = buffers.adapterRows;
  const write = (values: ArrayLike<number>): Offset => {
    const at = next;
    pack.arena.i32(at, values.length).set(values);
    next += 4 * values.length;
    return at;
  };
  return adapters.map(({ slot, scale, rows }) => {
    const adapterRows = new Set(Array.from(rows));
    const withLogits = places.flatMap((row, place) => (adapterRows.has(row) ? [place] : []));
    return {
      sites: slots.get(slot)!,
      scale,
      rows: write(rows),
      numRows: rows.length,
      logitRows: write(withLogits),
      numLogitRows: withLogits.length,
    };
  });
}

type Target = Pick<Projection, 'site' | 'weight'>;

/** Whether a step changes one of these; otherwise they are computed without adapters. */
export function hasDelta({ adapters }: DecoderStep, ...projections: readonly Projection[]): boolean {
  return adapters !== null && adapters.some(({ sites }) => projections.some(({ site }) => sites.has(site)));
}

/** out += the adapters' contribution for x to one projection, per row. */
export function addDeltas(step: DecoderStep, to: Target, x: Offset, out: Offset): void {
  for (const delta of step.adapters ?? []) {
    addDelta(step, delta, to, { x, out, rows: delta.rows, numTokens: delta.numRows });
  }
}

/** Like `addDeltas`, with only the rows that have logits. */
export function addLogitDeltas(step: DecoderStep, to: Target, x: Offset, out: Offset): void {
  for (const delta of step.adapters ?? []) {
    if (delta.numLogitRows === 0) continue;
    addDelta(step, delta, to, { x, out, rows: delta.logitRows, numTokens: delta.numLogitRows });
  }
}

function addDelta(
  { pack, buffers }: DecoderStep,
  { sites, scale: factor }: StepDelta,
  { site, weight }: Target,
  where: { x: Offset; out: Offset; rows: Offset; numTokens: number },
): void {
  const weights = sites.get(site);
  if (weights === undefined) return;
  const { numCols, numRows, parts } = weights;
  // Packs do not check bounds: a matrix of another size would overwrite the memory after it.
  assert(
    numCols === weight.numCols && numRows === weight.numRows,
    `${site} is ${weight.numRows} x ${weight.numCols}, its adapter ${numRows} x ${numCols}`,
  );
  const scratch = buffers.adapterScratch;
  for (const { a, b, rank, scale } of parts) {
    pack.lowRankDelta({ ...where, numCols, numRows, a, b, rank, scale: scale * factor, scratch });
  }
}
