import { createLazyAutomaton, type LazyAutomaton } from './automaton-walk.ts';
import { asciiClassesWhere, NON_ASCII_CLASS, withClass, type ClassSet } from './byte-classes.ts';
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
  const stateAt = (state: GrammarState): number => {
    const key = grammar.keyOf(state);
    let id = ids.get(key);
    if (id === undefined) {
      if (states.length >= MAX_STATES_PER_MASK) throw TOO_MANY;
      ids.set(key, (id = automaton.add()));
      states.push(state);
    }
    return id;
  };
  const automaton: LazyAutomaton = createLazyAutomaton({
    isJson: false,
    step(id, byte) {
      const before = states[id]!;
      const after = grammar.step(before, byte);
      if (after === null) return -1;
      return after === before ? id : stateAt(after);
    },
    loops(id): ClassSet {
      const set = asciiClassesWhere((byte) => automaton.next(id, byte) === id);
      for (let byte = 0x80; byte < 0x100; byte++) if (automaton.next(id, byte) !== id) return set;
      return withClass(set, NON_ASCII_CLASS);
    },
  });
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
