/** p = σ(slope · score + intercept). */
export interface Platt {
  readonly slope: number;
  readonly intercept: number;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const logit = (p: number): number => {
  const bounded = Math.max(1e-6, Math.min(1 - 1e-6, p));
  return Math.log(bounded / (1 - bounded));
};

/** The probability that a decision is right, given a raw confidence from 0 to 1. */
export const calibrate = (platt: Platt, raw: number): number => sigmoid(platt.slope * logit(raw) + platt.intercept);

/** A weak pull to slope 0, so that a few separable outcomes give no certainty. */
const RIDGE = 1e-2;
const NUM_STEPS = 30;

/** Platt scaling on held-out outcomes by Newton's method, with Platt's softened targets. */
export function fitPlatt(raw: readonly number[], isRight: readonly boolean[]): Platt {
  const numRight = isRight.filter(Boolean).length;
  const high = (numRight + 1) / (numRight + 2);
  const low = 1 / (raw.length - numRight + 2);
  let slope = 0;
  let intercept = logit((numRight + 1) / (raw.length + 2));
  const scores = raw.map(logit);
  for (let step = 0; step < NUM_STEPS; step++) {
    let [ga, gb, haa, hab, hbb] = [RIDGE * slope, 0, RIDGE, 0, 1e-9];
    for (let i = 0; i < scores.length; i++) {
      const x = scores[i]!;
      const p = sigmoid(slope * x + intercept);
      const error = p - (isRight[i]! ? high : low);
      const curvature = p * (1 - p);
      ga += error * x;
      gb += error;
      haa += curvature * x * x;
      hab += curvature * x;
      hbb += curvature;
    }
    const determinant = haa * hbb - hab * hab;
    const stepA = (hbb * ga - hab * gb) / determinant;
    const stepB = (haa * gb - hab * ga) / determinant;
    if (!Number.isFinite(stepA) || !Number.isFinite(stepB)) break;
    slope -= stepA;
    intercept -= stepB;
    if (Math.abs(stepA) + Math.abs(stepB) < 1e-9) break;
  }
  return { slope, intercept };
}

/** Expected calibration error: mean distance between confidence and accuracy over ten bins. */
export function calibrationError(confidences: readonly number[], isRight: readonly boolean[]): number {
  const bins = Array.from({ length: 10 }, () => ({ count: 0, stated: 0, right: 0 }));
  confidences.forEach((confidence, i) => {
    const bin = bins[Math.min(9, Math.floor(confidence * 10))]!;
    bin.count += 1;
    bin.stated += confidence;
    bin.right += +isRight[i]!;
  });
  return bins.reduce((sum, bin) => sum + Math.abs(bin.stated - bin.right), 0) / Math.max(1, confidences.length);
}
