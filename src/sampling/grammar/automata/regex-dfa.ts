import type { Fuel } from '../limits.ts';
import { unsupported } from '../limits.ts';
import type { CodeRanges } from './code-ranges.ts';
import { ANY } from './code-ranges.ts';
import type { DraftState } from './dfa.ts';
import type { Dfa } from './automaton.ts';
import { finishDfa } from './dfa.ts';
import type { RegexNode } from './regex-parser.ts';
import { parseRegex } from './regex-parser.ts';

/** A node either reads a character of `ranges` and goes to `next`, or goes to each of `free` without reading. */
interface NfaNode {
  ranges: CodeRanges | null;
  next: number;
  free: number[];
  /** Free edges may only be taken at the start, or at the end, of the text. */
  anchor: 'start' | 'end' | null;
}

function buildNfa(root: RegexNode, isSearch: boolean, fuel: Fuel): NfaNode[] {
  const nodes: NfaNode[] = [];
  const add = (node: Partial<NfaNode>): number => {
    fuel.burn(1, 'a pattern');
    if (nodes.length >= fuel.limits.maxStates * 4) {
      throw unsupported('pattern', null, `repetitions expand to more than ${fuel.limits.maxStates * 4} parts`);
    }
    return nodes.push({ ranges: null, next: -1, free: [], anchor: null, ...node }) - 1;
  };
  // Built from the back: `next` is the continuation.
  const build = (node: RegexNode, next: number): number => {
    if (node.kind === 'set') return add({ ranges: node.ranges, next });
    if (node.kind === 'start' || node.kind === 'end') return add({ free: [next], anchor: node.kind });
    if (node.kind === 'sequence') return node.parts.reduceRight((after, part) => build(part, after), next);
    if (node.kind === 'choice') return add({ free: node.parts.map((part) => build(part, next)) });
    let entry = next;
    if (node.max === Infinity) {
      entry = add({ free: [next] });
      nodes[entry]!.free.unshift(build(node.part, entry));
    } else {
      for (let i = node.min; i < node.max; i++) entry = add({ free: [build(node.part, entry), next] });
    }
    for (let i = 0; i < node.min; i++) entry = build(node.part, entry);
    return entry;
  };
  const final = add({});
  let end = final;
  if (isSearch) {
    end = add({ free: [final] });
    nodes[end]!.free.push(add({ ranges: ANY, next: end }));
  }
  let start = build(root, end);
  if (isSearch) {
    start = add({ free: [start] });
    nodes[start]!.free.push(add({ ranges: ANY, next: start }));
  }
  nodes.push({ ranges: null, next: start, free: [], anchor: null });
  return nodes;
}

/** Finds all nodes reachable without reading, sorted. A set of JavaScript for each search took half of the time of a large pattern. */
function createClosure(nodes: readonly NfaNode[], fuel: Fuel) {
  const found = new Int32Array(nodes.length);
  /** The search that found a node last. */
  const foundBy = new Int32Array(nodes.length);
  let search = 0;
  return (from: Iterable<number>, start: boolean, end: boolean): Int32Array => {
    let numFound = 0;
    search++;
    const add = (at: number): void => {
      if (foundBy[at] === search) return;
      foundBy[at] = search;
      found[numFound++] = at;
    };
    for (const at of from) add(at);
    for (let i = 0; i < numFound; i++) {
      const { free, anchor } = nodes[found[i]!]!;
      if (anchor === null || (anchor === 'start' && start) || (anchor === 'end' && end)) for (const to of free) add(to);
    }
    fuel.burn(numFound, 'a pattern');
    return found.slice(0, numFound).sort();
  };
}

function edgesOf(nodes: readonly NfaNode[], set: Int32Array, visit: (targets: number[]) => number, fuel: Fuel) {
  const readers = set.filter((at) => nodes[at]!.ranges !== null);
  const cuts = new Set<number>();
  for (const at of readers) {
    const ranges = nodes[at]!.ranges!;
    for (let i = 0; i < ranges.length; i += 2) cuts.add(ranges[i]!).add(ranges[i + 1]! + 1);
  }
  const starts = [...cuts].sort((a, b) => a - b);
  const targets: number[][] = starts.map(() => []);
  const positions = new Map(starts.map((start, i) => [start, i]));
  for (const at of readers) {
    const ranges = nodes[at]!.ranges!;
    for (let i = 0; i < ranges.length; i += 2) {
      const last = positions.get(ranges[i + 1]! + 1)!;
      for (let s = positions.get(ranges[i]!)!; s < last; s++) targets[s]!.push(nodes[at]!.next);
      fuel.burn(1 + last - positions.get(ranges[i]!)!, 'a pattern');
    }
  }
  const edges: number[] = [];
  const known = new Map<string, number>();
  starts.forEach((lo, s) => {
    if (targets[s]!.length === 0) return;
    const key = targets[s]!.join();
    let target = known.get(key);
    if (target === undefined) known.set(key, (target = visit(targets[s]!)));
    edges.push(lo, starts[s + 1]! - 1, target);
  });
  return edges;
}

/**
 * Subset construction. `isSearch`: a match anywhere in the text counts, as in JSON Schema; otherwise the whole text
 * must match.
 */
export function dfaOfRegexNode(root: RegexNode, isSearch: boolean, fuel: Fuel): Dfa {
  const nodes = buildNfa(root, isSearch, fuel);
  const start = nodes.pop()!.next;
  const states: DraftState[] = [];
  const sets: Int32Array[] = [];
  const closure = createClosure(nodes, fuel);
  const ids = new Map<string, number>();
  const visit = (from: readonly number[], isStart: boolean): number => {
    const set = closure(from, isStart, false);
    const key = `${isStart ? '^' : ''}${set.join()}`;
    let id = ids.get(key);
    if (id === undefined) {
      ids.set(key, (id = states.length));
      sets.push(set);
      const isAccepted = closure(set, isStart, true)[0] === 0;
      states.push({ label: isAccepted ? 1 : 0, edges: [] });
      if (states.length > fuel.limits.maxStates) {
        throw unsupported('pattern', null, `more than ${fuel.limits.maxStates} states`);
      }
    }
    return id;
  };
  visit([start], true);
  for (let i = 0; i < states.length; i++) {
    states[i]!.edges = edgesOf(nodes, sets[i]!, (targets) => visit(targets, false), fuel);
  }
  return finishDfa(states, fuel);
}

export function dfaOfRegex(pattern: string, isSearch: boolean, fuel: Fuel): Dfa {
  return fuel.tape.next(pattern.length, () => dfaOfRegexNode(parseRegex(pattern, fuel.limits), isSearch, fuel));
}
