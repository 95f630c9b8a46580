import type { LateParts } from '../../memory/audit/recorder.ts';
import type { EmbeddedText, Memory } from '../../memory/memory.ts';
import { cosine } from '../../memory/common/cosine.ts';
import { wordsOf } from '../../memory/common/words.ts';
import type { QualityEstimate, QualityParts } from '../../memory/schemas/audit.ts';
import { whyDegenerate } from '../quality/degenerate.ts';
import { estimateQuality } from '../quality/estimate-quality.ts';
import type { CallOutcome } from './types.ts';

type Answer = Pick<CallOutcome, 'text' | 'meanLogprob' | 'isJson' | 'calls' | 'error'>;

/** Patterns near the question that the answer is compared with. */
const NUM_PATTERNS = 3;

function isSound(text: string): boolean {
  try {
    return whyDegenerate(JSON.parse(text === '' ? '{}' : text)) === null;
  } catch {
    return false;
  }
}

/** Whether tool calls, or JSON that was asked for, can be used; null: neither applies. */
function isValid({ text, isJson = false, calls = [] }: Answer): boolean | null {
  if (calls.length > 0) return calls.every((call) => call.outcome === 'complete' && isSound(call.arguments));
  return isJson ? text !== '' && isSound(text) : null;
}

/** The quality of an answer without a person; null: it failed, and its error says more. */
export function scoreAnswer(answer: Answer, others: Omit<QualityParts, 'schema'> = {}): QualityEstimate | null {
  const { text, meanLogprob = null, error } = answer;
  return error === null ? estimateQuality({ text, meanLogprob, isValid: isValid(answer), others }) : null;
}

/** Agreement of two texts by meaning; opposite directions agree as little as unrelated ones. */
export const agreement = (a: Float32Array, b: Float32Array): number => Math.max(0, cosine(a, b));

const trigramsOf = (text: string): readonly string[] => {
  const words = wordsOf(text.toLowerCase());
  return words.slice(2).map((word, i) => `${words[i]!} ${words[i + 1]!} ${word}`);
};

/** Share of the answer's word trigrams that patterns near the question do not contain; null: there are no patterns. */
export async function uniquenessOf(
  store: Pick<Memory['store'], 'nearest'>,
  tenant: string,
  question: { readonly vector: Float32Array; readonly space: string },
  text: string,
): Promise<number | null> {
  const trigrams = trigramsOf(text);
  if (trigrams.length === 0) return null;
  const near = await store.nearest(tenant, { ...question, kinds: ['pattern'], k: NUM_PATTERNS });
  if (near.length === 0) return null;
  const banked = new Set(
    near.flatMap(({ record }) => trigramsOf((record.body as { readonly text?: string }).text ?? '')),
  );
  return trigrams.filter((trigram) => !banked.has(trigram)).length / trigrams.length;
}

interface LateContext {
  readonly memory: Pick<Memory, 'store'>;
  readonly tenant: string;
  readonly question: EmbeddedText;
  /** Parts from further answers. */
  readonly opinions: Pick<QualityParts, 'consistency' | 'peer'>;
}

/** The answer's vector and the parts of its quality that need it. Computed when the entry is written: no request waits for it. */
export function lateParts(
  { memory, tenant, question: { vector, space }, opinions }: LateContext,
  answer: Answer,
  embed: (text: string) => Promise<EmbeddedText | null>,
): LateParts {
  return async () => {
    const { text } = answer;
    if (text === '') return null;
    const embedded = await embed(text);
    const uniqueness = await uniquenessOf(memory.store, tenant, { vector, space }, text).catch(() => null);
    const estimate = scoreAnswer(answer, {
      ...opinions,
      ...(embedded?.space === space ? { coherence: agreement(vector, embedded.vector) } : {}),
      ...(uniqueness === null ? {} : { uniqueness }),
    });
    return {
      ...(embedded === null ? {} : { responseEmbedding: embedded.vector }),
      ...(estimate === null ? {} : { estimate }),
    };
  };
}
