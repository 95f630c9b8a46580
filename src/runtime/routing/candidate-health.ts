/** How candidates did lately: how long to their first token, and whether they can be reached. */
export interface CandidateHealth {
  note(id: string, ttftMs: number | null): void;
  /** False for a while after it could not be reached: whoever comes next does not wait for it to fail again. */
  isUp(id: string): boolean;
  /** By candidate, 0 where nothing was measured. */
  latencies(): readonly number[];
}

const REST_MS = 10_000;
/** Of the newest in the running mean. */
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
