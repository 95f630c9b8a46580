import { RuvLLMError } from '../../core/errors.ts';

/** Bounds on what a grammar from outside may cost. Every one has a default; all are checked before memory is taken. */
export interface GrammarLimits {
  /** Characters of a pattern or GBNF text, and of a schema's or structure's JSON text. */
  readonly maxSourceLength: number;
  /** Nesting of a schema's JSON, of a structure's nodes, of groups in a pattern and of groups in GBNF. */
  readonly maxDepth: number;
  /** States of one automaton over code points. */
  readonly maxStates: number;
  /** Steps of compiling, about 10 million a second. */
  readonly maxSteps: number;
  /** Steps that one token of a running matcher may cost before it gives up with an error. */
  readonly maxStepsPerToken: number;
  /** Nodes of a structure. */
  readonly maxNodes: number;
  /** UTF-8 bytes of one literal, trigger or closing text of a structure. */
  readonly maxTextBytes: number;
  /** Alternatives that one place of a schema may have once `anyOf`, `oneOf`, `not` and `if` are multiplied out. */
  readonly maxAlternatives: number;
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
});

/** A counter of work: input that costs too much gets an error with the number, never a hang. */
export interface Fuel {
  readonly limits: GrammarLimits;
  burn(steps: number, what: string): void;
  /** Starts counting anew under another bound. */
  refill(maxSteps: number): void;
}

export function createFuel(limits: GrammarLimits): Fuel {
  let max = limits.maxSteps;
  let left = max;
  return {
    limits,
    burn(steps, what) {
      left -= steps;
      if (left < 0) {
        throw new RuvLLMError('unsupported', `grammar: ${what} needs more than ${max} steps`, {
          data: { reason: 'steps', limit: max, what },
        });
      }
    },
    refill(maxSteps) {
      max = maxSteps;
      left = maxSteps;
    },
  };
}

/** Valid input that cannot be enforced; `pointer` is the place in the schema, or null. */
export function unsupported(keyword: string, pointer: string | null, reason: string): RuvLLMError {
  const at = pointer === null ? '' : ` at ${pointer === '' ? 'the root' : pointer}`;
  return new RuvLLMError('unsupported', `grammar: ${keyword}${at}: ${reason}`, {
    data: { keyword, pointer: pointer ?? '', reason },
  });
}

/** Input that breaks its own format. */
export function malformed(what: string, position: number | string, reason: string): RuvLLMError {
  return new RuvLLMError(
    'invalid_option',
    `grammar: ${what} at ${position === '' ? 'the root' : position}: ${reason}`,
    {
      data: { position },
    },
  );
}
