import type { TokenTable } from './token-table.ts';
import type { TokenTrie } from './token-trie.ts';
import { CONTROL_BEGIN, CONTROL_END } from './types.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

/** The node after a byte; -1: none. */
export function childOf(table: TokenTrie, node: number, byte: number): number {
  let child = node + 1;
  while (child < table.skip[node]! && table.bytes[child] !== byte) child = table.skip[child]!;
  return child < table.skip[node]! ? child : -1;
}

const firstNodes = new WeakMap<TokenTable, Int32Array>();

/** The node of each first byte: the root has most children, and every place of a text starts there. */
function firstNodesOf(table: TokenTable): Int32Array {
  let nodes = firstNodes.get(table);
  if (nodes === undefined) {
    nodes = new Int32Array(256).fill(-1);
    for (let node = 1; node < table.skip[0]!; node = table.skip[node]!) {
      if (table.bytes[node]! < 256) nodes[table.bytes[node]!] = node;
    }
    firstNodes.set(table, nodes);
  }
  return nodes;
}

/** Calls `found` with the end and id of each token that spells the text from `at` on. */
function eachToken(table: TokenTable, text: Uint8Array, at: number, found: (end: number, id: number) => void): void {
  const nodes = firstNodesOf(table);
  let node = 0;
  for (let end = at; end < text.length; end++) {
    node = end === at ? nodes[text[end]!]! : childOf(table, node, text[end]!);
    if (node < 0) return;
    if (table.own[node]! > table.first[node]!) found(end + 1, table.sorted[table.first[node]!]!);
  }
}

function eachControl(table: TokenTable, text: Uint8Array, at: number, found: (end: number, id: number) => void): void {
  let node = table.controlNode;
  for (let end = at; end < text.length; end++) {
    node = childOf(table, node, text[end]!);
    if (node < 0) return;
    const whole = childOf(table, node, CONTROL_END);
    if (whole >= 0) found(end + 1, table.sorted[table.first[whole]!]!);
  }
}

/**
 * The fewest tokens that spell the bytes; null if the vocabulary cannot. With a grammar and its state, control tokens
 * are used too where they lead to the same state.
 */
export function spellBytes(
  table: TokenTable,
  text: Uint8Array,
  under?: { readonly grammar: CompiledGrammar; readonly state: GrammarState },
): number[] | null {
  const best = new Int32Array(text.length + 1).fill(-1);
  /** The place before, and the token from there. */
  const from = new Int32Array(text.length + 1);
  const ids = new Int32Array(text.length + 1);
  best[0] = 0;
  const isControlled = under?.grammar.takesControls === true && table.controlNode < table.numNodes;
  const states = isControlled ? statesAlong(under.grammar, under.state, text) : [];
  for (let at = 0; at < text.length; at++) {
    const count = best[at]!;
    if (count < 0) continue;
    const offer = (end: number, id: number): void => {
      if (best[end]! >= 0 && count + 1 >= best[end]!) return;
      best[end] = count + 1;
      from[end] = at;
      ids[end] = id;
    };
    // First, because models are trained on this one of two equally short spellings.
    if (isControlled) {
      eachControl(table, text, at, (end, id) => {
        if (isSameWay(under.grammar, states, text, at, end)) offer(end, id);
      });
    }
    eachToken(table, text, at, offer);
  }
  if (best[text.length]! < 0) return null;
  const tokens: number[] = [];
  for (let at = text.length; at > 0; at = from[at]!) tokens.push(ids[at]!);
  return tokens.toReversed();
}

function statesAlong(grammar: CompiledGrammar, start: GrammarState, text: Uint8Array): (GrammarState | null)[] {
  const states: (GrammarState | null)[] = [start];
  for (const byte of text) {
    const last = states.at(-1)!;
    states.push(last === null ? null : grammar.step(last, byte));
  }
  return states;
}

function isSameWay(
  grammar: CompiledGrammar,
  states: readonly (GrammarState | null)[],
  text: Uint8Array,
  at: number,
  end: number,
): boolean {
  let state = states[at] ?? null;
  for (const byte of [CONTROL_BEGIN, ...text.subarray(at, end), CONTROL_END]) {
    if (state === null) return false;
    state = grammar.step(state, byte);
  }
  const plain = states[end] ?? null;
  return state !== null && plain !== null && grammar.keyOf(state) === grammar.keyOf(plain);
}
