import type { FloatKvPrecision, PackedKvPrecision } from '../../src/kernels/contract.ts';
import type { LoadedModel } from '../../src/models/types.ts';
import { createKlMeter, type KlResult } from './kl-divergence.ts';

/**
 * By how much, in nats, the mean KL divergence of a policy's next-token distributions from those over f16 pages may be above
 * that of f32 pages: where kernels round activations to eight bits, the least difference flips some of them, which is not
 * the policy's doing. The limits are what rounding the weights of an 8 B model costs: eight bits 1.4e-3, five bits 1.1e-2.
 */
export const KV_QUALITY_LIMITS: Readonly<Record<PackedKvPrecision, number>> = { q8: 1e-3, q4: 1e-2 };

/** Whether a packing stays within its limit; a comparison that is false for NaN, too. */
export function isWithinLimit(packed: PackedKvPrecision, result: KlResult, floor: KlResult): boolean {
  return result.meanKl - floor.meanKl <= KV_QUALITY_LIMITS[packed];
}

/** How a context is kept while it grows: its last `tailTokens` as they were written, whole pages before them packed. */
export interface KvPolicy {
  readonly packed: PackedKvPrecision | null;
  readonly tailTokens: number;
}

/** Rows in a step: one page, so that pages are packed as soon as they leave the tail. */
const STEP_TOKENS = 16;

/** What a model must be loaded with for `walkText`. */
export function limitsFor(numTokens: number, precisions: KvPrecisions) {
  return {
    maxBatchTokens: STEP_TOKENS,
    maxSequences: 1,
    maxLogitRows: STEP_TOKENS,
    // Float and packed pages side by side: nothing has to be given back while a text is walked through.
    numPages: 2 * Math.ceil(numTokens / STEP_TOKENS),
    ...precisions,
  };
}

/** Feeds a text through the model under a policy; `onRow` sees the logits after each token and whether something had left the tail. */
export async function walkText(
  model: LoadedModel,
  tokenIds: readonly number[],
  policy: KvPolicy,
  onRow: (position: number, logits: Float32Array, hasLeft: boolean) => void,
): Promise<void> {
  const { pages, shape } = model;
  const { pageTokens } = pages;
  const numPages = Math.ceil(tokenIds.length / pageTokens);
  const pageIds = Array.from({ length: numPages }, (_, page) => page);
  let numPacked = 0;
  for (let start = 0; start < tokenIds.length; start += STEP_TOKENS) {
    const moves = [];
    for (; policy.packed !== null && (numPacked + 1) * pageTokens <= start - policy.tailTokens; numPacked++) {
      const { pageBytes, unitBytes } = pages.packed!;
      const to = (numPages * pages.pageBytes + numPacked * pageBytes) / unitBytes;
      moves.push({ from: numPacked, to });
      pageIds[numPacked] = ~to;
    }
    if (moves.length > 0) await pages.packPages(moves);
    // Nobody may read them any more: NaN would show in the result.
    for (const { from } of moves) pages.bytesOf('float', from).fill(0xff);
    const some = tokenIds.slice(start, start + STEP_TOKENS);
    const positions = some.map((_, row) => start + row);
    const logits = await model.forward({
      tokenIds: some,
      positions,
      slots: positions,
      sequences: [{ firstRow: 0, numRows: some.length, contextTokens: start + some.length, pageIds }],
      logitRows: some.map((_, row) => row),
    });
    for (const [row, position] of positions.entries()) {
      onRow(
        position,
        logits.subarray(row * shape.vocabSize, (row + 1) * shape.vocabSize),
        start >= policy.tailTokens + pageTokens,
      );
    }
  }
}

/** What a model is loaded with. */
export interface KvPrecisions {
  readonly kvPrecision: FloatKvPrecision;
  readonly packedPrecision: PackedKvPrecision | null;
}

/**
 * How far the distributions under each policy are from those over f16 pages only, over all texts. The policy without packed
 * pages is run with f32 ones: kernels round activations to eight bits, so that the least difference flips some of them, and
 * what that does to a model is the floor of all other figures.
 */
export async function comparePolicies(
  load: (precisions: KvPrecisions) => Promise<LoadedModel>,
  texts: readonly (readonly number[])[],
  policies: readonly KvPolicy[],
): Promise<KlResult[]> {
  const meters = policies.map(() => createKlMeter());
  const float = await load({ kvPrecision: 'f16', packedPrecision: null });
  const { vocabSize } = float.shape;
  const expected: Float32Array[] = [];
  for (const text of texts) {
    const all = new Float32Array(text.length * vocabSize);
    await walkText(float, text, { packed: null, tailTokens: 0 }, (position, logits) =>
      all.set(logits, position * vocabSize),
    );
    expected.push(all);
  }
  await float.dispose();
  for (const packed of new Set(policies.map((policy) => policy.packed))) {
    const model = await load({ kvPrecision: packed === null ? 'f32' : 'f16', packedPrecision: packed });
    for (const [index, policy] of policies.entries()) {
      if (policy.packed !== packed) continue;
      for (const [i, text] of texts.entries()) {
        await walkText(model, text, policy, (position, logits, hasLeft) => {
          const row = expected[i]!.subarray(position * vocabSize, (position + 1) * vocabSize);
          if (hasLeft) meters[index]!.add(row, logits);
        });
      }
    }
    await model.dispose();
  }
  return meters.map((meter) => meter.result());
}
