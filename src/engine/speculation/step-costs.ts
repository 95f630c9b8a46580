/** Weight of a new measurement. */
const SMOOTHING = 0.1;
/** A pause of the machine says nothing about the model. */
const MAX_OUTLIER = 2;
/** Guessed cost of one more row before any measurement: low, so that it is tried and measured. */
const GUESSED_SLOPE = 0.08;

/** Time of a step by its rows, as measured on this machine with this model. */
export interface StepCosts {
  record(numRows: number, ms: number): void;
  /** Milliseconds of a step with so many rows; null: no step was measured yet. */
  estimate(numRows: number): number | null;
}

export function createStepCosts(maxRows: number): StepCosts {
  /** By number of rows; 0: not measured. */
  const measured = new Float64Array(maxRows + 1);
  return {
    record(numRows, ms) {
      if (numRows > maxRows || !(ms > 0)) return;
      const known = measured[numRows]!;
      measured[numRows] = known === 0 ? ms : known + SMOOTHING * (Math.min(ms, MAX_OUTLIER * known) - known);
    },
    estimate(numRows) {
      const at = Math.min(numRows, maxRows);
      if (measured[at]! > 0) return measured[at]!;
      let below = at;
      while (below > 0 && measured[below] === 0) below--;
      let above = at;
      while (above <= maxRows && !(measured[above]! > 0)) above++;
      const low = measured[below]!;
      const high = above <= maxRows ? measured[above]! : 0;
      if (below > 0 && high > 0) return low + ((high - low) * (at - below)) / (above - below);
      if (below > 0) return low * (1 + GUESSED_SLOPE * (at - below));
      return high > 0 ? high : null;
    },
  };
}
