/** Recent time to first token of the candidates, and whether they are reachable. */
export interface CandidateHealth {
  note(id: string, ttftMs: number | null): void;
  /** False for a while after a failure, so that the next requests do not wait for another. */
  isUp(id: string): boolean;
  /** By candidate; 0: not measured yet. */
  latencies(): readonly number[];
}

const REST_MS = 10_000;
/** Weight of the newest value in the running mean. */
const NEWEST_SHARE = 0.2;

export function createCandidateHealth(ids: readonly string[], now: () => number): CandidateHealth {
  const means = new Map<string, number>();
  const downUntil = new Map<string, number>();
  return {
    note(id, ttftMs) {
      if (ttftMs === null) {
        downUntil.set(id, now() + REST_MS);
        return;
      }
      downUntil.delete(id);
      const mean = means.get(id);
      means.set(id, mean === undefined ? ttftMs : mean + NEWEST_SHARE * (ttftMs - mean));
    },
    isUp: (id) => now() >= (downUntil.get(id) ?? -Infinity),
    latencies: () => ids.map((id) => means.get(id) ?? 0),
  };
}
