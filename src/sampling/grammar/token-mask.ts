import type { TokenTable } from './token-table.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

function allowRange(table: TokenTable, from: number, to: number, mask: Uint32Array): void {
  const { sorted } = table;
  for (let i = from; i < to; i++) {
    const id = sorted[i]!;
    mask[id >>> 5]! |= 1 << (id & 31);
  }
}

/** Sets the bits of all tokens that the grammar takes from this state on; the mask must be empty. */
export function fillMask(grammar: CompiledGrammar, table: TokenTable, start: GrammarState, mask: Uint32Array): void {
  const { bytes, depths, skip, first, own, below, contentBits, numNodes } = table;
  // Within a string that may go on in any way, whole subtrees are known beforehand: only tokens that end it are walked.
  if (start.freeRoom > 0) allowContent(table, start.freeRoom, mask);
  const states: GrammarState[] = [start];
  for (let node = 1; node < numNodes;) {
    const depth = depths[node]!;
    const before = states[depth - 1]!;
    if (before.freeRoom > 0 && depth <= 32 && ((contentBits[node]! >>> (depth - 1)) & 1) === 1) {
      if (depth === 1) {
        node = skip[node]!;
        continue;
      }
      if (before.freeRoom > below[node]!) {
        allowRange(table, first[node]!, first[skip[node]!]!, mask);
        node = skip[node]!;
        continue;
      }
    }
    const state = grammar.step(before, bytes[node]!);
    if (state === null) {
      node = skip[node]!;
      continue;
    }
    allowRange(table, first[node]!, own[node]!, mask);
    states[depth] = state;
    node++;
  }
  if (grammar.isComplete(start)) for (const id of table.vocabulary.endIds) mask[id >>> 5]! |= 1 << (id & 31);
}

/** All tokens that are string content of at most `room` characters. */
function allowContent(table: TokenTable, room: number, mask: Uint32Array): void {
  mask.set(table.contentMask);
  for (let i = 0; i < table.longest.length && table.lengths[i]! > room; i++) {
    const id = table.longest[i]!;
    mask[id >>> 5]! &= ~(1 << (id & 31));
  }
}
