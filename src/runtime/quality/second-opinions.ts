import { contentWords, wordsOf } from '../../memory/common/words.ts';
import type { RequestLimits } from '../requests/limits.ts';
import { generateAnswers } from '../requests/generate-answers.ts';
import type { GenerationRequest } from '../requests/generation-request.ts';
import type { ModelHost } from '../requests/model-host.ts';
import type { Opinion } from './types.ts';

/** Further answers that an answer is compared with, after it has ended. */
export interface OpinionOptions {
  /** Whether the model answers a second time, 48 tokens at most. Default false. */
  readonly secondSample?: boolean;
  /** A stronger model of this server that answers too, 48 tokens at most. Default: none. */
  readonly peer?: string | null;
}

export interface SecondOpinions {
  of(request: GenerationRequest, tenant: string): Opinion;
}

interface OpinionContext {
  readonly models: ModelHost;
  readonly limits: RequestLimits;
}

const MAX_TOKENS = 48;
/** The entry waits for it; a busy server must not wait longer. */
const TIMEOUT_MS = 10_000;
const LOWEST_PRIORITY = -10;

/** Agreement of two texts: F1 of their words that carry meaning, over as many words as the shorter one has. */
export function wordAgreement(a: string, b: string): number {
  const [all, others] = [wordsOf(a), wordsOf(b)];
  const length = Math.min(all.length, others.length);
  const [one, two] = [all, others].map((words) => new Set(contentWords(words.slice(0, length).join(' '))));
  if (one!.size === 0 || two!.size === 0) return one!.size === two!.size ? 1 : 0;
  const numShared = [...one!].filter((word) => two!.has(word)).length;
  return (2 * numShared) / (one!.size + two!.size);
}

export function createSecondOpinions(
  { models, limits }: OpinionContext,
  { secondSample = false, peer = null }: OpinionOptions,
): SecondOpinions | null {
  if (!secondSample && peer === null) return null;

  /** A short answer of a model, at the lowest priority; null: it failed, or another request needs the memory. */
  async function sample(request: GenerationRequest, tenant: string, modelId: string): Promise<string | null> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const lease = await models.acquire(modelId, { signal, waitMs: TIMEOUT_MS, tenant });
      try {
        const { seed: _seed, session: _session, reflection: _reflection, maxTokens = MAX_TOKENS, temperature = 0, ...options } = request.options; // prettier-ignore
        const short = {
          ...options,
          maxTokens: Math.min(maxTokens, MAX_TOKENS),
          // The same greedy answer again would agree with itself.
          temperature: Math.max(0.7, temperature),
          priority: LOWEST_PRIORITY,
          clampMaxTokens: true,
        };
        const once = { ...request, prompts: request.prompts.slice(0, 1), numChoices: 1, options: short };
        let text = '';
        for await (const chunk of generateAnswers(lease.model, once, { tenant, signal }, limits)) text += chunk.text;
        return text;
      } finally {
        lease.release();
      }
    } catch {
      return null;
    }
  }

  return {
    of: (request, tenant) => async (modelId, text) => {
      const second = secondSample ? await sample(request, tenant, modelId) : null;
      const peerText = peer === null || peer === modelId ? null : await sample(request, tenant, peer);
      return {
        ...(second === null ? {} : { consistency: wordAgreement(text, second) }),
        ...(peerText === null ? {} : { peer: wordAgreement(text, peerText) }),
      };
    },
  };
}
