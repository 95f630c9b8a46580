/**
 * A deterministic automaton over code points. Transitions of state q are entries offsets[q] to offsets[q + 1] of `lo`, `hi`, `to`,
 * sorted; a character without one is rejected. Every state can reach an accepting one, state 0 is the start, and an automaton
 * without states accepts nothing.
 */
export interface Dfa {
  readonly id: number;
  readonly numStates: number;
  readonly offsets: Int32Array;
  readonly lo: Int32Array;
  readonly hi: Int32Array;
  readonly to: Int32Array;
  /** 0: not accepting; otherwise the label of the text read. */
  readonly labels: Int32Array;
  /** 1: every continuation is accepted with the same label. */
  readonly free: Uint8Array;
}
