import { createLazyAutomaton, type LazyAutomaton, type Loops } from './automaton-walk.ts';
import { asciiClassesWhere, unionOfClasses, WIDE_CLASSES, wideClassesWhere } from './byte-classes.ts';
import type { TokenTrie } from './token-trie.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

/** Each state takes a kilobyte; beyond this the automaton is started anew. */
const MAX_STATES = 1_024;
/** States of one mask; a grammar with more does not recur. */
const MAX_STATES_PER_MASK = 8_192;

interface RecurringAutomaton {
  readonly automaton: LazyAutomaton;
  stateAt(state: GrammarState): number;
}

const TOO_MANY = Symbol('too many states');

function createRecurringAutomaton(grammar: CompiledGrammar): RecurringAutomaton {
  const ids = new Map<string, number>();
  const states: GrammarState[] = [];
  /** The same without keys, which take longer than a step. */
  const idsByState = new WeakMap<GrammarState, number>();
  const stateAt = (state: GrammarState): number => {
    let id = idsByState.get(state);
    if (id !== undefined) return id;
    const key = grammar.keyOf(state);
    id = ids.get(key);
    if (id === undefined) {
      if (states.length >= MAX_STATES_PER_MASK) throw TOO_MANY;
      ids.set(key, (id = automaton.add()));
      states.push(state);
    }
    idsByState.set(state, id);
    return id;
  };
  const automaton: LazyAutomaton = createLazyAutomaton({
    step(id, byte) {
      const before = states[id]!;
      const after = grammar.step(before, byte);
      if (after === null) return -1;
      return after === before ? id : stateAt(after);
    },
    loops(id): Loops {
      const ascii = asciiClassesWhere((byte) => automaton.next(id, byte) === id);
      if (isAnyByte(id)) return { ...unionOfClasses(ascii, WIDE_CLASSES), whole: { low: 0, high: 0 } };
      const wide = wideClassesWhere((lo, hi) => grammar.loopsOn?.(states[id]!, lo, hi) === true);
      return { ...unionOfClasses(ascii, wide), whole: WIDE_CLASSES };
    },
  });
  /** Whether bytes of multi-byte characters are not told apart. */
  const isAnyByte = (id: number): boolean => {
    for (let byte = 0x80; byte < 0x100; byte++) if (automaton.next(id, byte) !== id) return false;
    return true;
  };
  return { automaton, stateAt };
}

const automata = new WeakMap<CompiledGrammar, RecurringAutomaton>();

/** Sets the bits of all tokens that can be read from the state; false, with some of them set, if too many states follow. */
export function walkRecurring(
  grammar: CompiledGrammar,
  trie: TokenTrie,
  numNodes: number,
  start: GrammarState,
  mask: Uint32Array,
): boolean {
  let recurring = automata.get(grammar);
  if (recurring === undefined || recurring.automaton.numStates > MAX_STATES) {
    automata.set(grammar, (recurring = createRecurringAutomaton(grammar)));
  }
  try {
    recurring.automaton.walk(trie, numNodes, recurring.stateAt(start), mask);
    return true;
  } catch (error) {
    if (error !== TOO_MANY) throw error;
    automata.delete(grammar);
    return false;
  }
}
