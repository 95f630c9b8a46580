import type { SampledToken } from '../sampling/types.ts';
import type { Sequence } from './sequence.ts';

/** A token that another thread has chosen, or why it could not. */
export interface SampleOutcome {
  readonly sequence: Sequence;
  readonly result: { readonly token: SampledToken } | { readonly error: unknown };
}

/** Tokens that are chosen in another thread while other sequences go on. */
export interface PendingSamples {
  readonly size: number;
  add(sequence: Sequence, token: Promise<SampledToken>): void;
  has(sequence: Sequence): boolean;
  /** The sequence has ended: its token is not wanted any more. */
  remove(sequence: Sequence): void;
  /** The outcomes that have arrived since the last call. */
  take(): SampleOutcome[];
  /** Resolves with the next outcome. */
  readonly next: Promise<void>;
  /** Whether a step should wait a moment: all that is pending has been quick so far. */
  readonly areQuick: boolean;
}

/** A token that takes longer is not worth waiting for: other sequences would generate slowly beside it. */
const QUICK_MS = 2;

export function createPendingSamples(now: () => number): PendingSamples {
  const pending = new Set<Sequence>();
  const arrived: SampleOutcome[] = [];
  /** Milliseconds that the last token of a sequence took. */
  const lastMs = new WeakMap<Sequence, number>();
  let notify = (): void => {};
  let next = new Promise<void>((resolve) => (notify = resolve));

  function settle(sequence: Sequence, startMs: number, result: SampleOutcome['result']): void {
    if (!pending.delete(sequence)) return; // it has ended
    lastMs.set(sequence, now() - startMs);
    arrived.push({ sequence, result });
    notify();
    next = new Promise((resolve) => (notify = resolve));
  }

  return {
    get size() {
      return pending.size;
    },
    add(sequence, token) {
      const startMs = now();
      pending.add(sequence);
      token.then(
        (chosen) => settle(sequence, startMs, { token: chosen }),
        (error: unknown) => settle(sequence, startMs, { error }),
      );
    },
    has: (sequence) => pending.has(sequence),
    remove: (sequence) => void pending.delete(sequence),
    take: () => arrived.splice(0),
    get next() {
      return arrived.length > 0 ? Promise.resolve() : next;
    },
    get areQuick() {
      for (const sequence of pending) if ((lastMs.get(sequence) ?? Infinity) > QUICK_MS) return false;
      return pending.size > 0;
    },
  };
}
