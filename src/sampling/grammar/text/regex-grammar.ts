import type { Dfa } from '../automata/automaton.ts';
import { dfaStep, hasEdgeInto, loopsOn } from '../automata/dfa.ts';
import { cheapestCode, measureDistances, shortestText, utf8Cost } from '../automata/dfa-measures.ts';
import { dfaOfRegex } from '../automata/regex-dfa.ts';
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
import { malformed } from '../limits.ts';
import type { CompiledGrammar, GrammarState } from '../types.ts';

interface RegexState extends GrammarState {
  readonly at: number;
  readonly character: CharacterState;
}

const encoder = new TextEncoder();

/** The state after every character in [lo, hi], -1 if none continues; null if it depends on the character. */
function edgeAround(dfa: Dfa, state: number, lo: number, hi: number): number | null {
  for (let e = dfa.offsets[state]!; e < dfa.offsets[state + 1]!; e++) {
    if (dfa.hi[e]! < lo || dfa.lo[e]! > hi) continue;
    return dfa.lo[e]! <= lo && dfa.hi[e]! >= hi ? dfa.to[e]! : null;
  }
  return -1;
}

/** A grammar of the texts that match the whole pattern. */
export function createRegexGrammar(pattern: string, fuel: Fuel): CompiledGrammar {
  const dfa = dfaOfRegex(pattern, false, fuel);
  if (dfa.numStates === 0) throw malformed('pattern', 0, 'no text matches it');
  const distances = measureDistances(dfa, utf8Cost, fuel);
  const between: RegexState[] = [];
  const stateOf = (at: number, character: CharacterState): RegexState => {
    const create = (): RegexState => ({ freeRoom: 0, at, character, isRecurring: true });
    return character === BETWEEN ? (between[at] ??= create()) : create();
  };

  /** Completes an unfinished character so that the least remains. */
  const finish = ({ at, character }: RegexState): { readonly head: Uint8Array; readonly next: number } => {
    let [head, next, least]: [Uint8Array, number, number] = [new Uint8Array(0), at, Infinity];
    if (character === BETWEEN) return { head, next };
    const codes = possibleCodes(character);
    for (let e = dfa.offsets[at]!; e < dfa.offsets[at + 1]!; e++) {
      const [lo, hi] = [Math.max(dfa.lo[e]!, codes[0]!), Math.min(dfa.hi[e]!, codes[1]!)];
      const after = distances.bytes[dfa.to[e]!]!;
      if (lo > hi || after >= least) continue;
      least = after;
      head = finishCharacter(character, cheapestCode(lo, hi, utf8Cost));
      next = dfa.to[e]!;
    }
    return { head, next };
  };
  const closingBytes = (state: RegexState): number => {
    const { head, next } = finish(state);
    return head.length + distances.bytes[next]!;
  };

  return {
    start: stateOf(0, BETWEEN),
    beginToken() {},
    sizeBytes: fuel.heldBytes,
    step(state, byte) {
      const { at, character } = state as RegexState;
      const code = readUtf8Byte(character, byte);
      if (code >= 0) {
        const next = dfaStep(dfa, at, code);
        return next < 0 ? null : stateOf(next, BETWEEN);
      }
      if (code !== RESULT.partial) return null;
      const unfinished = shareUnfinished(nextState, (lo, hi, otherLo, otherHi) => {
        const target = edgeAround(dfa, at, lo, hi);
        return target !== null && target === edgeAround(dfa, at, otherLo, otherHi);
      });
      const codes = possibleCodes(unfinished);
      return hasEdgeInto(dfa, at, codes[0]!, codes[1]!) ? stateOf(at, unfinished) : null;
    },
    loopsOn(state, lo, hi) {
      const { at, character } = state as RegexState;
      return character === BETWEEN && loopsOn(dfa, at, lo, hi);
    },
    isComplete: (state) => (state as RegexState).character === BETWEEN && dfa.labels[(state as RegexState).at] !== 0,
    keyOf(state) {
      const { at, character } = state as RegexState;
      return `${at}.${character.mode}.${character.missing}.${character.bits}`;
    },
    closingBytes: (state) => closingBytes(state as RegexState),
    closing(state, maxBytes) {
      if (closingBytes(state as RegexState) > maxBytes) return null;
      const { head, next } = finish(state as RegexState);
      const tail = encoder.encode(shortestText(distances, next, (q, code) => dfaStep(dfa, q, code)));
      return Uint8Array.from([...head, ...tail]);
    },
  };
}
