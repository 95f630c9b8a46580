import type { FloatKvPrecision, PackedKvPrecision } from '../../src/kernels/contract.ts';
import type { LoadedModel } from '../../src/models/types.ts';
import { createKlMeter, type KlResult } from '../../src/core/kl-meter.ts';

/**
 * Maximum mean KL divergence in nats of a policy's next-token distributions from those over f16 pages, beyond that of
 * f32 pages: if kernels round activations to 8 bits, the smallest difference flips some of them, which is not the
 * policy's fault. The limits are the cost of rounding the weights of an 8B model: 8 bits 1.4e-3, 5 bits 1.1e-2.
 */
export const KV_QUALITY_LIMITS: Readonly<Record<PackedKvPrecision, number>> = { q8: 1e-3, q4: 1e-2 };

/** Whether a packing stays within its limit; false for NaN. */
export function isWithinLimit(packed: PackedKvPrecision, result: KlResult, floor: KlResult): boolean {
  return result.meanKl - floor.meanKl <= KV_QUALITY_LIMITS[packed];
}

/** How a context is stored while it grows: its last `tailTokens` as written, whole pages before them packed. */
export interface KvPolicy {
  readonly packed: PackedKvPrecision | null;
  readonly tailTokens: number;
}

/** Rows per step: one page, so that pages are packed as soon as they leave the tail. */
const STEP_TOKENS = 16;

/** The model limits that `walkText` requires. */
export function limitsFor(numTokens: number, precisions: KvPrecisions) {
  return {
    maxBatchTokens: STEP_TOKENS,
    maxSequences: 1,
    maxLogitRows: STEP_TOKENS,
    // Float and packed pages side by side: no page has to be released during a text.
    numPages: 2 * Math.ceil(numTokens / STEP_TOKENS),
    ...precisions,
  };
}

/** Runs a text through the model under a policy; `onRow` gets the logits after each token and whether pages have left the tail. */
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
    // They must not be read any more: NaN would show in the result.
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

/** Precisions of a loaded model. */
export interface KvPrecisions {
  readonly kvPrecision: FloatKvPrecision;
  readonly packedPrecision: PackedKvPrecision | null;
}

/**
 * The divergence of each policy's distributions from those over only f16 pages, over all texts. The policy without
 * packed pages runs with f32 ones: kernels round activations to 8 bits, so the smallest difference flips some of them,
 * and that effect is the floor of all other figures.
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
