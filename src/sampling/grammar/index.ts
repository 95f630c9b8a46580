export { compileGrammar } from './compile.ts';
export { DEFAULT_LIMITS } from './limits.ts';
export type { GrammarLimits } from './limits.ts';
export { createTokenMatcher } from './token-matcher.ts';
export type { TokenMatcher, TokenMatcherOptions } from './token-matcher.ts';
export { createTokenTable, spellBytes } from './token-table.ts';
export type { TokenTable } from './token-table.ts';
export { createTokenVocabulary } from './token-vocabulary.ts';
export type { CompiledGrammar, GrammarSource, GrammarState, TokenVocabulary } from './types.ts';
