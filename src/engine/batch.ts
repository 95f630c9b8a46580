import type { StepAdapter, StepBatch, StepSequence, StepVectors } from '../models/types.ts';
import { vectorsOf } from './image-rows.ts';
import type { Sequence } from './sequence.ts';
import { compareAdapters } from './adapter-table.ts';
import type { Schedule, SequenceAdapter } from './types.ts';

/** Scheduled rows as model input: one flat row per token, page tables, and the largest top-logit count any sampler asks for. */
export function buildBatch(schedule: Schedule, sequences: ReadonlyMap<number, Sequence>, maxTop: number): StepBatch {
  const numRows = schedule.rows.reduce((sum, rows) => sum + rows.numRows, 0);
  const tokenIds = new Int32Array(numRows);
  const positions = new Int32Array(numRows);
  const slots = new Int32Array(numRows);
  const logitRows: number[] = [];
  const hiddenRows: number[] = [];
  const stepSequences: StepSequence[] = [];
  const withAdapters: AdapterRows[] = [];
  const vectors: StepVectors[] = [];
  let row = 0;
  let numTop = 0;
  for (const scheduled of schedule.rows) {
    const sequence = sequences.get(scheduled.id)!;
    const { adapters } = sequence.request;
    if (adapters.length > 0) withAdapters.push({ adapters, firstRow: row, numRows: scheduled.numRows });
    vectors.push(...vectorsOf(sequence.request, scheduled, row));
    const state = sequence.pages.stateFor(scheduled.start, scheduled.numRows);
    stepSequences.push({
      ...(state === null ? {} : { state }),
      firstRow: row,
      numRows: scheduled.numRows,
      contextTokens: scheduled.start + scheduled.numRows,
      pageIds: sequence.pages.table(),
    });
    for (let position = scheduled.start; position < scheduled.start + scheduled.numRows; position++, row++) {
      tokenIds[row] = sequence.tokenIds[position] ?? scheduled.draft![position - sequence.tokenIds.length]!;
      positions[row] = position;
      slots[row] = sequence.pages.slotOf(position);
    }
    const { first, numRows: numHidden } = scheduled.hidden ?? { first: 0, numRows: 0 };
    const firstHidden = row - scheduled.numRows + first - scheduled.start;
    for (let i = 0; i < numHidden; i++) hiddenRows.push(firstHidden + i);
    if (!scheduled.isCaughtUp) continue;
    for (let back = scheduled.draft?.length ?? 0; back >= 0; back--) logitRows.push(row - 1 - back);
    numTop = Math.max(numTop, Math.min(sequence.request.sampler.numCandidates ?? 0, maxTop));
  }
  const batch = { tokenIds, positions, slots, sequences: stepSequences, logitRows, hiddenRows, numTop, vectors };
  return withAdapters.length === 0 ? batch : { ...batch, adapters: groupRows(withAdapters) };
}

interface AdapterRows {
  readonly adapters: readonly SequenceAdapter[];
  readonly firstRow: number;
  readonly numRows: number;
}

/** One entry per adapter and scale, in the order of `SequenceAdapter`s, so a row's sums are rounded as if it were alone. */
function groupRows(sequences: readonly AdapterRows[]): StepAdapter[] {
  const groups = new Map<string, { adapter: SequenceAdapter; place: number; rows: number[] }>();
  for (const { adapters, firstRow, numRows } of sequences) {
    const used = new Map<string, number>();
    for (const adapter of adapters) {
      const name = `${adapter.contentHash} ${adapter.scale} ${adapter.id}`;
      // The same adapter twice becomes two entries, so that no entry lists a row twice.
      const place = used.get(name) ?? 0;
      used.set(name, place + 1);
      const key = `${name} ${place}`;
      const group = groups.get(key) ?? { adapter, place, rows: [] };
      groups.set(key, group);
      for (let row = firstRow; row < firstRow + numRows; row++) group.rows.push(row);
    }
  }
  return [...groups.values()]
    .sort((a, b) => compareAdapters(a.adapter, b.adapter) || a.adapter.id - b.adapter.id || a.place - b.place)
    .map(({ adapter, rows }) => ({ slot: adapter.id, scale: adapter.scale, rows }));
}
