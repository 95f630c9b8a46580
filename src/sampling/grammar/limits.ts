import { RuvLLMError } from '../../core/errors.ts';
import type { DfaTape } from './automata/dfa-tape.ts';
import { NO_TAPE } from './automata/dfa-tape.ts';

/** Limits of a grammar from outside. All have defaults and are checked before memory is allocated. */
export interface GrammarLimits {
  /** Characters of a pattern or GBNF text, and of the JSON text of a schema or structure. */
  readonly maxSourceLength: number;
  /** Nesting depth of a schema's JSON, a structure's nodes, and groups in a pattern or GBNF. */
  readonly maxDepth: number;
  /** States of one automaton over code points. */
  readonly maxStates: number;
  /** Compilation steps, about 10 million per second. */
  readonly maxSteps: number;
  /** Steps per token of a running matcher before it fails. */
  readonly maxStepsPerToken: number;
  /** Nodes of a structure. */
  readonly maxNodes: number;
  /** UTF-8 bytes of one literal, trigger or closing text of a structure. */
  readonly maxTextBytes: number;
  /** Alternatives at one place of a schema after expanding `anyOf`, `oneOf`, `not` and `if`. */
  readonly maxAlternatives: number;
  /** Whitespace characters in a row in JSON; the nesting depth limits them too. */
  readonly maxWhitespace: number;
}

export const DEFAULT_LIMITS: GrammarLimits = Object.freeze({
  maxSourceLength: 1_000_000,
  maxDepth: 128,
  maxStates: 32_000,
  maxSteps: 20_000_000,
  maxStepsPerToken: 20_000_000,
  maxNodes: 20_000,
  maxTextBytes: 16_384,
  maxAlternatives: 2_000,
  maxWhitespace: 600,
});

/** A work counter: input that costs too much fails with the number instead of hanging. */
export interface Fuel {
  readonly limits: GrammarLimits;
  /** Source of the automata. */
  readonly tape: DfaTape;
  /** Steps since creation or the last refill. */
  readonly spent: number;
  burn(steps: number, what: string): void;
  /** Approximate bytes held; never decreases. */
  readonly heldBytes: number;
  hold(sizeBytes: number): void;
  /** Restarts the count with another limit. */
  refill(maxSteps: number): void;
}

export function createFuel(limits: GrammarLimits, tape = NO_TAPE): Fuel {
  let max = limits.maxSteps;
  let left = max;
  let heldBytes = 0;
  return {
    limits,
    tape,
    get spent() {
      return max - left;
    },
    burn(steps, what) {
      left -= steps;
      if (left < 0) {
        throw new RuvLLMError('unsupported', `grammar: ${what} needs more than ${max} steps`, {
          data: { reason: 'steps', limit: max, what },
        });
      }
    },
    get heldBytes() {
      return heldBytes;
    },
    hold(sizeBytes) {
      heldBytes += sizeBytes;
    },
    refill(maxSteps) {
      max = maxSteps;
      left = maxSteps;
    },
  };
}

/** Valid input that cannot be enforced; `pointer` is its place in the schema, or null. */
export function unsupported(keyword: string, pointer: string | null, reason: string): RuvLLMError {
  const at = pointer === null ? '' : ` at ${pointer === '' ? 'the root' : pointer}`;
  return new RuvLLMError('unsupported', `grammar: ${keyword}${at}: ${reason}`, {
    data: { keyword, pointer: pointer ?? '', reason },
  });
}

export function malformed(what: string, position: number | string, reason: string): RuvLLMError {
  return new RuvLLMError(
    'invalid_option',
    `grammar: ${what} at ${position === '' ? 'the root' : position}: ${reason}`,
    {
      data: { position },
    },
  );
}
