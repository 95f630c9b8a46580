import type { Random } from '../core/random.ts';
import { RuvLLMError } from '../core/errors.ts';
import { checkLogits } from './check-logits.ts';
import { createForcedTokens } from './forced-tokens.ts';
import type { TokenMatcher } from './grammar/index.ts';
import { logSumExp, topLogprobs } from './logprobs.ts';
import { createSampler } from './sampler.ts';
import type { Sampler, SamplingParams } from './types.ts';

export interface ConstrainedSamplerOptions {
  readonly maxTokens: number;
  readonly endIds: readonly number[];
  /** Completions that are longer and must be spelled fail with `unsupported` and the reason `steps`. Default: none. */
  readonly maxSpelledBytes?: number;
}

/**
 * A sampler that keeps the text within a grammar and completes it in time: once only the tokens of the shortest
 * completion are left, it generates that.
 */
export function createConstrainedSampler(
  params: SamplingParams,
  random: Random,
  matcher: TokenMatcher,
  { maxTokens, endIds, maxSpelledBytes = Infinity }: ConstrainedSamplerOptions,
): Sampler {
  const { endBan, ...unbanned } = params;
  // Log-probabilities are the model's own, so they are computed before the mask.
  const inner = createSampler({ ...unbanned, topLogprobs: null }, random);
  let masked = new Float32Array(0);
  let numLeft = maxTokens;
  let ending: readonly number[] | null = null;
  const canClose = createCloseCheck(maxSpelledBytes);
  const forced = createForcedTokens();
  if (endIds.length === 0) throw new RuvLLMError('unsupported', 'a grammar requires a model with an end-of-text token');
  requireRoom(matcher, maxTokens);

  /** Bans ends before the minimum length, unless the grammar allows nothing else. */
  function banEnds(numAllowed: number, history: readonly number[]): void {
    if (endBan === undefined || history.length >= endBan.length) return;
    const banned = endBan.ids.filter((id) => masked[id]! > -Infinity);
    if (banned.length < numAllowed) for (const id of banned) masked[id] = -Infinity;
  }

  function mask(logits: Float32Array, history: readonly number[]): Float32Array {
    if (masked.length !== logits.length) masked = new Float32Array(logits.length);
    masked.fill(-Infinity);
    const words = matcher.mask();
    let numAllowed = 0;
    for (let word = 0; word < words.length; word++) {
      for (let bits = words[word]!; bits !== 0; bits &= bits - 1) {
        const id = word * 32 + 31 - Math.clz32(bits & -bits);
        if (id >= logits.length) break;
        masked[id] = logits[id]!;
        numAllowed++;
      }
    }
    if (numAllowed === 0)
      throw new RuvLLMError('unsupported', 'the vocabulary cannot spell any text the grammar allows next');
    banEnds(numAllowed, history);
    return masked;
  }

  function choose(logits: Float32Array, history: readonly number[]): number {
    if (ending !== null) return ending[0]!;
    const tokenId = inner.sample(mask(logits, history), history).tokenId;
    const next = matcher.clone();
    next.accept(tokenId);
    if (next.isEnded || canClose(next, numLeft - 1)) return tokenId;
    const tokens = matcher.closingTokens();
    if (tokens === null || tokens.length > numLeft) {
      throw new RuvLLMError('internal', `no completion fits in the ${numLeft} tokens left`);
    }
    ending = tokens.length === 0 ? [endIds[0]!] : tokens;
    return ending[0]!;
  }

  return {
    draft: (maxTokens) => ending?.slice(0, maxTokens) ?? forced.guess(matcher, maxTokens),
    sample(logits, history) {
      checkLogits(logits);
      const tokenId = choose(logits, history);
      if (!matcher.accept(tokenId)) {
        throw new RuvLLMError('internal', `token ${tokenId} was chosen outside the grammar`);
      }
      forced.observe(matcher, tokenId);
      ending = ending === null ? null : ending.slice(1);
      if (ending?.length === 0) ending = null;
      numLeft--;
      if (params.topLogprobs === null) return { tokenId, logprob: null, top: [] };
      const logNormalizer = logSumExp(logits);
      return {
        tokenId,
        logprob: logits[tokenId]! - logNormalizer,
        top: topLogprobs(logits, logNormalizer, params.topLogprobs),
      };
    },
  };
}

/** Whether a completion of the text after a token fits. */
function createCloseCheck(maxSpelledBytes: number): (matcher: TokenMatcher, maxTokens: number) => boolean {
  /** The last completion that was spelled: a long one takes milliseconds, and most tokens leave its end as it is. */
  let last: { readonly bytes: Uint8Array; readonly ends: Int32Array } | null = null;

  /** Tokens of a text that is the end of the last completion, or a few more; Infinity: another text. */
  function countSuffix(bytes: Uint8Array): number {
    if (last === null || bytes.length > last.bytes.length) return Infinity;
    const from = last.bytes.length - bytes.length;
    for (let i = 0; i < bytes.length; i++) if (bytes[i] !== last.bytes[from + i]) return Infinity;
    let first = 0;
    while (last.ends[first]! < from) first++;
    // The first token is cut; every byte of it has a token.
    return last.ends[first]! - from + (last.ends.length - 1 - first);
  }

  return (matcher, maxTokens) => {
    // A completion never takes more tokens than bytes; only texts near their end need an exact count.
    const closingBytes = matcher.closingBytes();
    if (closingBytes <= maxTokens) return true;
    if (closingBytes > maxSpelledBytes) {
      throw new RuvLLMError(
        'unsupported',
        `grammar: a completion has ${closingBytes} bytes, the limit is ${maxSpelledBytes}`,
        {
          data: { reason: 'steps', closingBytes, limit: maxSpelledBytes },
        },
      );
    }
    const bytes = matcher.closing();
    if (bytes === null) return false;
    if (countSuffix(bytes) <= maxTokens) return true;
    const tokens = matcher.spell(bytes);
    if (tokens === null) return false;
    const ends = new Int32Array(tokens.length);
    for (let i = 0, end = 0; i < tokens.length; i++) ends[i] = end += matcher.sizeOf(tokens[i]!);
    last = { bytes, ends };
    return tokens.length <= maxTokens;
  };
}

function requireRoom(matcher: TokenMatcher, maxTokens: number): void {
  const tokens = matcher.closingTokens();
  if (tokens !== null && tokens.length <= maxTokens) return;
  const what = tokens === null ? `${matcher.closingBytes()} bytes` : `${tokens.length} tokens`;
  throw new RuvLLMError(
    'invalid_option',
    `option "maxTokens" is ${maxTokens}, but the shortest text the grammar allows takes ${what}`,
    { data: { option: 'maxTokens', maxTokens, neededTokens: tokens?.length ?? matcher.closingBytes() } },
  );
}
