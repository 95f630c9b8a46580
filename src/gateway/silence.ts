/** How long a node that did not answer gets no requests; doubled each time. */
const FIRST_SILENCE_MS = 10_000;
const MAX_SILENCE_MS = 300_000;

/** A node. */
interface Watched {
  readonly silence: NodeSilence;
}

/** How long requests have waited for a node that accepts them, and whether it answers at all. Its health may be good all the while. */
export interface NodeSilence {
  /** Requests that wait for the beginning of their answer. */
  numWaiting: number;
  /** When the first of them began to wait, or the last answer began. */
  sinceMs: number;
  /** Time that ended waits took since the last answer. */
  endedMs: number;
  /** Times in a row that it was found to be silent. */
  numTimes: number;
  /** Until then others get its requests. */
  untilMs: number;
}

export const createSilence = (): NodeSilence => ({ numWaiting: 0, sinceMs: 0, endedMs: 0, numTimes: 0, untilMs: 0 });

export function startWait({ silence }: Watched, nowMs: number): void {
  if (silence.numWaiting++ === 0) silence.sinceMs = nowMs;
}

/** Ends the wait of a request that was answered. */
export function endWait({ silence }: Watched, nowMs: number): void {
  silence.numWaiting--;
  silence.sinceMs = nowMs;
  silence.endedMs = 0;
  silence.numTimes = 0;
}

/**
 * Ends the wait of a request that was not answered. Returns whether the node is silent: clients may leave before a limit passes, so their
 * waits are added up.
 */
export function giveUpWait({ silence }: Watched, nowMs: number, limitMs: number): boolean {
  const waitedMs = silence.endedMs + nowMs - silence.sinceMs;
  if (--silence.numWaiting === 0) silence.endedMs = waitedMs;
  if (waitedMs < limitMs) return false;
  silence.untilMs = nowMs + Math.min(MAX_SILENCE_MS, FIRST_SILENCE_MS * 2 ** Math.min(10, silence.numTimes));
  silence.numTimes++;
  return true;
}

/** Whether others should get its requests. After a while one may ask it again. */
export const isSilent = ({ silence }: Watched, nowMs: number): boolean =>
  silence.numTimes > 0 && (nowMs < silence.untilMs || silence.numWaiting > 0);
