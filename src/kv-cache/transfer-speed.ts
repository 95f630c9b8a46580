/** Decides by measured times whether pages are read from a shared store or computed. */
export interface TransferSpeed {
  /** Milliseconds that computing a page takes; null: not measured yet. */
  readonly computeMs: number | null;
  /** Milliseconds until the first page of a prompt is there, and for each further one; null: not measured yet. */
  readonly firstMs: number | null;
  readonly nextMs: number | null;
  /** A step computed a prompt. */
  onComputed(numPages: number, elapsedMs: number): void;
  onFirst(elapsedMs: number): void;
  /** `numPages` pages arrived after the first one. */
  onNext(numPages: number, elapsedMs: number): void;
  /** Whether reading is expected to be faster. Without measurements it is, so that there will be some. */
  isWorthwhile(numPages: number): boolean;
}

/** Weight of a new measurement: the average follows a change within about ten. */
const WEIGHT = 0.2;
/** A store that was slower is tried again this often; it may have become faster. */
const RETRY_MS = 30_000;

const average = (before: number | null, value: number): number =>
  before === null ? value : before + WEIGHT * (value - before);

export function createTransferSpeed(now: () => number): TransferSpeed {
  let computeMs: number | null = null;
  let firstMs: number | null = null;
  let nextMs: number | null = null;
  let nextTryMs = -Infinity;

  function isFaster(numPages: number): boolean {
    if (computeMs === null || firstMs === null) return true;
    return firstMs + (numPages - 1) * (nextMs ?? 0) < numPages * computeMs;
  }

  return {
    get computeMs() {
      return computeMs;
    },
    get firstMs() {
      return firstMs;
    },
    get nextMs() {
      return nextMs;
    },
    onComputed: (numPages, elapsedMs) => void (computeMs = average(computeMs, elapsedMs / numPages)),
    onFirst: (elapsedMs) => void (firstMs = average(firstMs, elapsedMs)),
    onNext: (numPages, elapsedMs) => void (nextMs = average(nextMs, elapsedMs / numPages)),
    isWorthwhile(numPages) {
      if (!isFaster(numPages) && now() < nextTryMs) return false;
      nextTryMs = now() + RETRY_MS;
      return true;
    },
  };
}
