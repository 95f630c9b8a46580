import { AGENT_SOURCE } from '../../memory/agents/types.ts';
import type { MemoryQuestion } from '../../memory/search/ask.ts';
import type { PackedContext, PackedSource } from '../../memory/search/pack.ts';
import { MAX_AUDIT_TEXT } from '../../memory/schemas/text-lengths.ts';
import type { FieldCondition, RecordKind } from '../../memory/types.ts';
import type { Prompt } from '../prompt.ts';
import { type CorrectedPair, noCorrections } from './corrections.ts';
import type { ResolvedMemoryWish } from './memory-wish.ts';
import { addContext, addExchange } from './recall.ts';
import type { RecallReport } from './types.ts';

/** Facts and messages of agents belong to one user: only the agent memory recalls them. */
function noAgentMemory(kinds: readonly RecordKind[]): readonly FieldCondition[] {
  const isAffected = kinds.includes('fact') || kinds.includes('agent-step');
  return isAffected ? [{ field: 'source', is: '!=', value: AGENT_SOURCE }] : [];
}

/** The texts are packed here and not by the search, because only this thread has the tokenizer of the answering model. */
export function searchOf(wish: ResolvedMemoryWish): NonNullable<MemoryQuestion['search']> {
  const { tokenBudget: _, remember: _remember, kinds, filter, ...rest } = wish;
  const all = [...filter, ...(kinds.includes('qa-pair') ? [noCorrections] : []), ...noAgentMemory(kinds)];
  return { ...rest, kinds: [...kinds], filter: all };
}

export const estimateTokens = (text: string): number => Math.ceil(text.length / 4);

export function promptWith(prompt: Prompt, context: PackedContext | null, correction: CorrectedPair | null): Prompt {
  const withTexts = context === null || context.sources.length === 0 ? prompt : addContext(prompt, context.text);
  return correction === null ? withTexts : addExchange(withTexts, correction);
}

/** Null: nothing was requested, and no correction applies. */
export function reportOf(
  packed: { readonly context: PackedContext; readonly tokenBudget: number } | null,
  correction: CorrectedPair | null,
): RecallReport | null {
  if (packed === null && correction === null) return null;
  const { sources: texts, numTokens, numLeftOut } = packed?.context ?? { sources: [], numTokens: 0, numLeftOut: 0 };
  const sources = correction === null ? texts : [...texts, sourceOf(correction, texts.length + 1)];
  const outcome = sources.length > 0 ? 'used' : numLeftOut > 0 ? 'nothing_fitted' : 'nothing_found';
  return { outcome, sources, numTokens, numLeftOut, tokenBudget: packed?.tokenBudget ?? 0 };
}

/** Named last: the numbers of the other sources stand in the prompt. */
const sourceOf = ({ id, question, answer }: CorrectedPair, number: number): PackedSource => ({
  number,
  id,
  kind: 'qa-pair',
  numTokens: estimateTokens(question) + estimateTokens(answer),
  position: null,
  isCut: false,
});

/** Longer answers are cut off in the audit entry. */
export const MAX_REMEMBERED_TEXT = MAX_AUDIT_TEXT;
