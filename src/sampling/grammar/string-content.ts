import type { Dfa } from './automata/automaton.ts';
import { dfaStep, hasEdgeInto, loopsOn } from './automata/dfa.ts';
import { createLazyAutomaton, type LazyAutomaton } from './automaton-walk.ts';
import {
  asciiClassesWhere,
  BACKSLASH_CLASS,
  unionOfClasses,
  WIDE_CLASSES,
  wideClassesWhere,
  withClass,
  withoutClass,
} from './byte-classes.ts';
import type { CharacterState } from './json/string-lexer.ts';
import { BETWEEN, isMultiByte, nextState, possibleCodes, readByte, RESULT } from './json/string-lexer.ts';
import type { TokenTrie } from './token-trie.ts';

/** A place inside a JSON string from which an automaton alone decides the content. */
export interface StringContent {
  readonly dfa: Dfa;
  readonly state: number;
  readonly character: CharacterState;
  /** Whether the string can be completed from a place; null: from every one. */
  readonly isAlive: ((state: number, character: CharacterState) => boolean) | null;
  /** Places of one owner share the automaton of their bytes. */
  readonly owner: object;
  /** Equal for places with equal content. */
  readonly key: string;
}

/** The automaton of a string's content by bytes. */
interface ContentAutomaton {
  readonly automaton: LazyAutomaton;
  stateAt(state: number, character: CharacterState): number;
}

/** Each state takes a kilobyte; beyond this the automaton is started anew. */
const MAX_STATES = 1_024;

/** Mode of a character whose remaining bytes do not matter; the lexer's modes are not negative. */
const ANY_BYTES = -1;
const NO_LOOPS = { low: 0, high: 0, whole: { low: 0, high: 0 } };
/** Of these, only whole characters and escapes are content. */
const WHOLE = withClass(WIDE_CLASSES, BACKSLASH_CLASS);

function createContentAutomaton({ dfa, isAlive }: StringContent): ContentAutomaton {
  const ids = new Map<string, number>();
  const places: [number, CharacterState][] = [];
  /** States in which `missing` continuation bytes lead to a target, whichever they are. */
  const anyBytes = new Map<string, number>();
  const stateAt = (state: number, character: CharacterState): number => {
    const { mode, missing, bits, size } = character;
    const key = mode === 0 ? `${state}` : `${state}.${mode}.${missing}.${bits}.${size}`;
    let id = ids.get(key);
    if (id === undefined) {
      ids.set(key, (id = automaton.add()));
      places.push([state, character]);
    }
    return id;
  };
  const afterAny = (missing: number, target: number): number => {
    if (missing === 0) return stateAt(target, BETWEEN);
    const key = `${missing}.${target}`;
    let id = anyBytes.get(key);
    if (id === undefined) {
      anyBytes.set(key, (id = automaton.add()));
      places.push([target, { mode: ANY_BYTES, missing, bits: 0, size: 0 }]);
    }
    return id;
  };
  const automaton: LazyAutomaton = createLazyAutomaton({
    step(id, byte) {
      const [state, character] = places[id]!;
      if (byte > 0xff) return -1;
      if (character.mode === ANY_BYTES) return (byte & 0xc0) === 0x80 ? afterAny(character.missing - 1, state) : -1;
      const code = readByte(character, byte);
      if (code >= 0) {
        const target = dfaStep(dfa, state, code);
        return target < 0 || isAlive?.(target, BETWEEN) === false ? -1 : stateAt(target, BETWEEN);
      }
      if (code !== RESULT.partial) return -1;
      const unfinished = nextState;
      const codes = possibleCodes(unfinished);
      const target = targetOfAll(dfa, state, unfinished, codes);
      if (target >= 0) return isAlive?.(target, BETWEEN) === false ? -1 : afterAny(unfinished.missing, target);
      for (let i = 0; i < codes.length; i += 2) {
        if (!hasEdgeInto(dfa, state, codes[i]!, codes[i + 1]!)) continue;
        return isAlive?.(state, unfinished) === false ? -1 : stateAt(state, unfinished);
      }
      return -1;
    },
    loops(id) {
      const [state, character] = places[id]!;
      if (character.mode !== 0) return NO_LOOPS;
      const isLoop = (code: number): boolean => dfaStep(dfa, state, code) === state;
      // Raw control characters and the quote do not occur in content.
      let set = asciiClassesWhere((byte) => byte >= 0x20 && byte !== 0x22 && isLoop(byte));
      const isEscapeLoop = isLoop(0x22) && isLoop(0x5c) && loopsOn(dfa, state, 0, 0x1f);
      set = isEscapeLoop ? withClass(set, BACKSLASH_CLASS) : withoutClass(set, BACKSLASH_CLASS);
      const wide = wideClassesWhere((lo, hi) => loopsOn(dfa, state, lo, hi));
      return { ...unionOfClasses(set, wide), whole: WHOLE };
    },
  });
  return { automaton, stateAt };
}

const automata = new WeakMap<object, ContentAutomaton>();

/** Sets the bits of all tokens before node `numNodes` that stay inside the string. */
export function allowStringContent(trie: TokenTrie, numNodes: number, content: StringContent, mask: Uint32Array): void {
  let bytes = automata.get(content.owner);
  if (bytes === undefined || bytes.automaton.numStates > MAX_STATES) {
    automata.set(content.owner, (bytes = createContentAutomaton(content)));
  }
  bytes.automaton.walk(trie, numNodes, bytes.stateAt(content.state, content.character), mask);
}

/** The state after every character that an unfinished one can become; -1 if it depends on the character. */
function targetOfAll(dfa: Dfa, state: number, unfinished: CharacterState, [lo, hi]: readonly number[]): number {
  if (!isMultiByte(unfinished) || hi! - lo! + 1 !== 64 ** unfinished.missing) return -1;
  for (let e = dfa.offsets[state]!; e < dfa.offsets[state + 1]!; e++) {
    if (dfa.lo[e]! <= lo! && dfa.hi[e]! >= hi!) return dfa.to[e]!;
  }
  return -1;
}
