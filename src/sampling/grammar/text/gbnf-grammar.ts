import { intersectRanges } from '../automata/code-ranges.ts';
import { cheapestCode, utf8Cost } from '../automata/dfa-measures.ts';
import type { CharacterState } from '../json/string-lexer.ts';
import {
  BETWEEN,
  RESULT,
  finishCharacter,
  nextState,
  possibleCodes,
  readUtf8Byte,
  shareUnfinished,
} from '../json/string-lexer.ts';
import type { Fuel } from '../limits.ts';
import { malformed, unsupported } from '../limits.ts';
import type { CompiledGrammar, GrammarState } from '../types.ts';
import type { GbnfGrammar, GbnfSymbol } from './gbnf-parser.ts';
import { parseGbnf } from './gbnf-parser.ts';

/** The remaining input, innermost first: the rest of a sequence, then its parents. */
interface Stack {
  readonly id: number;
  readonly sequence: readonly GbnfSymbol[];
  readonly at: number;
  readonly below: Stack | null;
  /** Bytes of the shortest completion of this and all below. */
  readonly bytes: number;
}

interface GbnfState extends GrammarState {
  /** Each is about to read a character. */
  readonly stacks: readonly Stack[];
  readonly isWhole: boolean;
  readonly character: CharacterState;
}

// Parallel readings of one text, and stacks cached by name at one time.
const MAX_STACKS = 10_000;
const MAX_KNOWN = 200_000;
const STACK_BYTES = 160;
/** A new stack takes 1 to 2 microseconds, in which other work takes this many steps. */
const NEW_STACK_STEPS = 25;
/** Bits of a small integer. */
const MAX_CHOICE_BITS = 30;
/** States whose next ones are kept: a mask reads hundreds of bytes after each of a few. */
const MAX_RECENT = 64;

/** Longer texts count as this long: rules that double 1,100 times would otherwise reach Infinity. */
const MAX_COUNTED_BYTES = Number.MAX_SAFE_INTEGER;

/** Infinity stays: it marks rules that never end. */
const addBytes = (a: number, b: number): number => (b === Infinity ? b : Math.min(a + b, MAX_COUNTED_BYTES));

interface RuleMeasures {
  /** Bytes of the shortest text of each rule; Infinity for rules that never end. */
  readonly rule: Float64Array;
  readonly symbol: (symbol: GbnfSymbol) => number;
  /** The sequence of each rule's shortest text. These never lead back to their rule. */
  readonly shortest: readonly (readonly GbnfSymbol[])[];
}

function measureRules({ rules }: GbnfGrammar, fuel: Fuel): RuleMeasures {
  const rule = new Float64Array(rules.length).fill(Infinity);
  const shortest: (readonly GbnfSymbol[])[] = rules.map(() => []);
  const symbol = (one: GbnfSymbol): number => {
    if ('rule' in one) return rule[one.rule]!;
    return one.ranges.length === 0 ? Infinity : utf8Cost(one.ranges[0]!);
  };
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    for (let i = rules.length - 1; i >= 0; i--) {
      for (const sequence of rules[i]!) {
        fuel.burn(1 + sequence.length, 'GBNF');
        const bytes = sequence.reduce((sum, one) => addBytes(sum, symbol(one)), 0);
        if (bytes >= rule[i]!) continue;
        rule[i] = bytes;
        shortest[i] = sequence;
        isChanged = true;
      }
    }
  }
  return { rule, symbol, shortest };
}

/** Left recursion never ends, except in last position, where nothing piles up. */
function refuseLeftRecursion({ rules, names }: GbnfGrammar, bytes: Float64Array, fuel: Fuel): void {
  const edges: Set<number>[] = rules.map(() => new Set());
  const piling: [number, number][] = [];
  rules.forEach((rule, from) => {
    for (const sequence of rule) {
      for (const [i, symbol] of sequence.entries()) {
        if (!('rule' in symbol)) break;
        edges[from]!.add(symbol.rule);
        if (i < sequence.length - 1) piling.push([from, symbol.rule]);
        if (bytes[symbol.rule]! > 0) break;
      }
    }
  });
  for (const [from, to] of piling) {
    const seen = new Set([to]);
    for (const next of seen) {
      fuel.burn(1 + edges[next]!.size, 'GBNF');
      for (const after of edges[next]!) seen.add(after);
    }
    if (seen.has(from)) throw unsupported('GBNF', null, `rule ${names[from]} begins with itself (left recursion)`);
  }
}

/** A grammar of the texts of the rule `root`. */
export function createGbnfGrammar(text: string, fuel: Fuel): CompiledGrammar {
  const grammar = parseGbnf(text, fuel);
  const { rule: ruleBytes, symbol: symbolBytes, shortest } = measureRules(grammar, fuel);
  if (ruleBytes[grammar.root] === Infinity) throw malformed('GBNF', 'rule root', 'no text satisfies it');
  refuseLeftRecursion(grammar, ruleBytes, fuel);
  // Alternatives that never end are dropped.
  const rules = grammar.rules.map((rule) =>
    rule.filter((sequence) => sequence.every((one) => symbolBytes(one) < Infinity)),
  );

  /** Per sequence: its number, and the bytes of its shortest text from each place on. */
  const sequences = new Map<readonly GbnfSymbol[], { readonly id: number; readonly bytesFrom: Float64Array }>();
  const openSequence = (sequence: readonly GbnfSymbol[]): { readonly id: number; readonly bytesFrom: Float64Array } => {
    let opened = sequences.get(sequence);
    if (opened === undefined) {
      const bytesFrom = new Float64Array(sequence.length + 1);
      fuel.hold(bytesFrom.byteLength);
      for (let i = sequence.length - 1; i >= 0; i--)
        bytesFrom[i] = addBytes(bytesFrom[i + 1]!, symbolBytes(sequence[i]!));
      sequences.set(sequence, (opened = { id: sequences.size, bytesFrom }));
    }
    return opened;
  };
  const known = new Map<string, Stack>();
  let lastId = 0;
  const push = (sequence: readonly GbnfSymbol[], at: number, below: Stack | null): Stack | null => {
    if (at === sequence.length) return below;
    const { id: sequenceId, bytesFrom } = openSequence(sequence);
    const key = `${sequenceId}.${at}.${below?.id ?? 0}`;
    let stack = known.get(key);
    if (stack === undefined) {
      const bytes = addBytes(below?.bytes ?? 0, bytesFrom[at]!);
      if (known.size > MAX_KNOWN) known.clear();
      else fuel.hold(STACK_BYTES);
      fuel.burn(NEW_STACK_STEPS, 'a token');
      known.set(key, (stack = { id: ++lastId, sequence, at, below, bytes }));
    }
    return stack;
  };

  /** Enters rules until every stack is about to read a character. */
  const settle = (from: readonly (Stack | null)[]): GbnfState => {
    const stacks = new Set<Stack>();
    const entered = new Set<string>();
    const pending = [...from];
    let isWhole = false;
    while (pending.length > 0) {
      fuel.burn(2, 'a token');
      const stack = pending.pop()!;
      if (stack === null) {
        isWhole = true;
        continue;
      }
      const symbol = stack.sequence[stack.at]!;
      if (!('rule' in symbol)) {
        stacks.add(stack);
        continue;
      }
      const below = push(stack.sequence, stack.at + 1, stack.below);
      const key = `${symbol.rule}.${below?.id ?? 0}`;
      if (entered.has(key)) continue;
      entered.add(key);
      for (const sequence of rules[symbol.rule]!) pending.push(push(sequence, 0, below));
    }
    if (stacks.size > MAX_STACKS)
      throw unsupported('GBNF', null, `more than ${MAX_STACKS} readings of the text at once`);
    return { freeRoom: 0, stacks: [...stacks], isWhole, character: BETWEEN, isRecurring: true };
  };
  const rangesOf = (stack: Stack): readonly number[] =>
    (stack.sequence[stack.at] as { ranges: readonly number[] }).ranges;

  /** The stack with the shortest completion, and its bytes. */
  const findShortest = ({ stacks, character }: GbnfState): { readonly stack: Stack; readonly bytes: number } => {
    let stack = stacks[0]!;
    let bytes = Infinity;
    for (const one of stacks) {
      const isBetween = character === BETWEEN;
      const oneBytes = isBetween ? one.bytes : one.bytes - utf8Cost(rangesOf(one)[0]!) + character.missing;
      if (oneBytes >= bytes) continue;
      stack = one;
      bytes = oneBytes;
    }
    return { stack, bytes };
  };

  const closing = (state: GbnfState, maxBytes: number): Uint8Array | null => {
    if (state.isWhole) return new Uint8Array(0);
    const { stack: best, bytes: numBytes } = findShortest(state);
    if (numBytes > maxBytes) return null;
    const possible = state.character === BETWEEN ? null : possibleCodes(state.character);
    const bytes: number[] = [];
    const first = rangesOf(best);
    const allowed = possible === null ? first : intersectRanges(first, possible);
    const code = cheapest(allowed);
    bytes.push(
      ...(possible === null ? encoder.encode(String.fromCodePoint(code)) : finishCharacter(state.character, code)),
    );
    const pending: GbnfSymbol[] = [];
    const enter = (sequence: readonly GbnfSymbol[], from: number): void => {
      fuel.burn(1 + sequence.length - from, 'closing');
      // Empty ones are left out: rules may double them without adding a byte.
      for (let i = sequence.length - 1; i >= from; i--) if (symbolBytes(sequence[i]!) > 0) pending.push(sequence[i]!);
    };
    const levels: Stack[] = [];
    for (let stack: Stack | null = best; stack !== null; stack = stack.below) levels.push(stack);
    for (const [i, level] of levels.toReversed().entries())
      enter(level.sequence, level.at + (i === levels.length - 1 ? 1 : 0));
    while (pending.length > 0) {
      const symbol = pending.pop()!;
      if ('rule' in symbol) {
        enter(shortest[symbol.rule]!, 0);
        continue;
      }
      const cheap = cheapest(symbol.ranges);
      if (cheap < 0x80) bytes.push(cheap);
      else bytes.push(...encoder.encode(String.fromCodePoint(cheap)));
    }
    return Uint8Array.from(bytes);
  };

  const recent = new Map<GbnfState, Map<number, GbnfState>>(); // oldest first
  const nextStatesOf = (state: GbnfState): Map<number, GbnfState> => {
    let next = recent.get(state);
    if (next === undefined) {
      recent.set(state, (next = new Map()));
      if (recent.size > MAX_RECENT) recent.delete(recent.keys().next().value!);
    }
    return next;
  };
  /** The state after a character; null if not allowed. It depends only on the stacks that take the character. */
  const readCode = (state: GbnfState, code: number): GbnfState | null => {
    const takes = (stack: Stack): boolean => hasCode(rangesOf(stack), code, code);
    const settleAfter = (): GbnfState =>
      settle(state.stacks.filter(takes).map((stack) => push(stack.sequence, stack.at + 1, stack.below)));
    if (state.stacks.length > MAX_CHOICE_BITS) return state.stacks.some(takes) ? settleAfter() : null;
    let choice = 0;
    for (const [i, stack] of state.stacks.entries()) if (takes(stack)) choice |= 1 << i;
    if (choice === 0) return null;
    const known = nextStatesOf(state);
    let next = known.get(choice);
    if (next === undefined) known.set(choice, (next = settleAfter()));
    return next;
  };
  const keyOf = ({ stacks, isWhole, character }: GbnfState): string => {
    const ids = stacks.map((stack) => stack.id).sort((a, b) => a - b);
    return `${ids.join()}${isWhole ? '!' : ''}${character.mode}.${character.missing}.${character.bits}`;
  };

  return {
    start: settle(
      grammar.rules[grammar.root]!.length === 0 ? [null] : rules[grammar.root]!.map((one) => push(one, 0, null)),
    ),
    beginToken: () => fuel.refill(fuel.limits.maxStepsPerToken),
    get sizeBytes() {
      return fuel.heldBytes;
    },
    step(state, byte) {
      const { stacks, character } = state as GbnfState;
      fuel.burn(stacks.length, 'a token');
      const code = readUtf8Byte(character, byte);
      if (code >= 0) return readCode(state as GbnfState, code);
      if (code !== RESULT.partial) return null;
      const unfinished = shareUnfinished(nextState, (from, to, otherFrom, otherTo) =>
        stacks.every((stack) => {
          const ranges = rangesOf(stack);
          const isAll = hasAll(ranges, from, to);
          if (isAll !== hasAll(ranges, otherFrom, otherTo)) return false;
          return isAll || !(hasCode(ranges, from, to) || hasCode(ranges, otherFrom, otherTo));
        }),
      );
      const [lo, hi] = possibleCodes(unfinished) as [number, number];
      const left = stacks.filter((stack) => hasCode(rangesOf(stack), lo, hi));
      return left.length === 0
        ? null
        : ({ freeRoom: 0, stacks: left, isWhole: false, character: unfinished, isRecurring: true } as GbnfState);
    },
    isComplete: (state) => (state as GbnfState).isWhole,
    loopsOn(given, lo, hi) {
      const state = given as GbnfState;
      const isAlike = state.stacks.every((stack) => {
        const ranges = rangesOf(stack);
        return hasAll(ranges, lo, hi) || !hasCode(ranges, lo, hi);
      });
      if (!isAlike || state.character !== BETWEEN) return false;
      const next = readCode(state, lo);
      return next !== null && keyOf(next) === keyOf(state);
    },
    keyOf: (state) => keyOf(state as GbnfState),
    closingBytes: (state) => ((state as GbnfState).isWhole ? 0 : findShortest(state as GbnfState).bytes),
    closing: (state, maxBytes) => closing(state as GbnfState, maxBytes),
  };
}

const encoder = new TextEncoder();

function cheapest(ranges: readonly number[]): number {
  if (ranges.length === 2 && ranges[0] === ranges[1]) return ranges[0]!;
  let best = -1;
  for (let i = 0; i < ranges.length; i += 2) {
    const code = cheapestCode(ranges[i]!, ranges[i + 1]!, utf8Cost);
    if (best < 0 || utf8Cost(code) < utf8Cost(best) || (best < 32 && code >= 32 && code < 128)) best = code;
  }
  return best;
}

function hasAll(ranges: readonly number[], lo: number, hi: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) if (ranges[i]! <= lo && ranges[i + 1]! >= hi) return true;
  return false;
}

function hasCode(ranges: readonly number[], lo: number, hi: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) if (ranges[i]! <= hi && ranges[i + 1]! >= lo) return true;
  return false;
}
