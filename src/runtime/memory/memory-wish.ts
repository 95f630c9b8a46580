import { RuvLLMError } from '../../core/errors.ts';
import { booleanOption, integerOption, numberOption, type OptionReader, resolveOptions } from '../../core/options.ts';
import { SEARCHED_KINDS, type FieldCondition, type RecordKind } from '../../memory/types.ts';

/** Selects the memories that go into a prompt. */
export interface MemoryWish {
  /** Maximum texts: 1 to 50. Default 5. */
  k?: number;
  /**
   * Default: documents, facts, concepts, patterns, and answers that were corrected or rated as good. Unrated answers of the
   * model are recalled only if `kinds` has `qa-pair` or the kind of audit entries, and come after everything else.
   */
  kinds?: readonly RecordKind[];
  /** Conditions on declared fields. Default: none. */
  filter?: readonly FieldCondition[];
  /** Maximum tokens of all texts, counted with the tokenizer of the answering model. Default 512. */
  tokenBudget?: number;
  /** Minimum cosine similarity; texts that share many words with the question need none. Default 0.2. */
  minSimilarity?: number;
  /** Steps along the graph from the nearest texts, and to texts that share a rare name with them: 0 to 3. Default 0. */
  expandHops?: number;
  /**
   * Whether the session has an agent memory: its messages are stored, facts are extracted from them, and both are recalled in
   * this and later sessions of the user. Requires `session`. Default false.
   */
  remember?: boolean;
}

export type ResolvedMemoryWish = Readonly<Required<MemoryWish>> & {
  /** Excludes unrated answers of the model. */
  readonly onlyTrusted: boolean;
};

const DEFAULT_KINDS: readonly RecordKind[] = ['document', 'fact', 'concept', 'pattern', 'qa-pair'];

const kindsOption: OptionReader<readonly RecordKind[]> = (value, name) => {
  if (value === undefined) return DEFAULT_KINDS;
  if (Array.isArray(value) && value.length > 0 && value.every((kind) => SEARCHED_KINDS.includes(kind as RecordKind))) {
    return [...new Set(value as RecordKind[])];
  }
  throw new RuvLLMError('invalid_option', `option "${name}" must be a list of ${SEARCHED_KINDS.join(', ')}`, {
    data: { option: name },
  });
};

/** Two less than the store accepts, because recall adds two. */
const MAX_CONDITIONS = 30;

/** The store checks the conditions, because it knows the fields. */
const filterOption: OptionReader<readonly FieldCondition[]> = (value, name) => {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.length <= MAX_CONDITIONS) return value as readonly FieldCondition[];
  throw new RuvLLMError('invalid_option', `option "${name}" must be a list of at most ${MAX_CONDITIONS} conditions`, {
    data: { option: name },
  });
};

/** Reads the option `memory` of a call. */
export const memoryWishOption: OptionReader<ResolvedMemoryWish> = (value, name) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RuvLLMError('invalid_option', `option "${name}" must be an object`, { data: { option: name } });
  }
  const readers = {
    k: integerOption(5, 1, 50),
    kinds: kindsOption,
    filter: filterOption,
    tokenBudget: integerOption(512, 1, 1 << 20),
    minSimilarity: numberOption(0.2, -1, 1),
    expandHops: integerOption(0, 0, 3),
    remember: booleanOption(false),
  };
  const wish = resolveOptions<Required<MemoryWish>>(name, value as MemoryWish, readers, { path: `${name}.` });
  return { ...wish, onlyTrusted: (value as MemoryWish).kinds === undefined };
};

export function noSession(): RuvLLMError {
  return new RuvLLMError('invalid_option', 'option "memory.remember" requires a session', {
    data: { option: 'memory.remember' },
  });
}

export function noMemory(): RuvLLMError {
  return new RuvLLMError('invalid_option', 'option "memory" requires an open memory', { data: { option: 'memory' } });
}
