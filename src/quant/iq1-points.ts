import { IQ1_GRID } from './iq1-grid.ts';

const NUM_POINTS = IQ1_GRID.length / 8;

/**
 * The grid of IQ1_S and IQ1_M with its offset of an eighth, in eighths: point p has +1/8, point 2048 + p has -1/8, so
 * that its levels are among ±1, ±7 and ±9.
 */
export const IQ1_POINTS = new Int8Array(2 * IQ1_GRID.length);
for (let i = 0; i < IQ1_GRID.length; i++) {
  IQ1_POINTS[i] = IQ1_GRID[i]! * 8 + 1;
  IQ1_POINTS[i + IQ1_GRID.length] = IQ1_GRID[i]! * 8 - 1;
}

/** First of the points with offset -1/8. */
export const NEGATIVE_OFFSET: number = NUM_POINTS;

/** The largest magnitude is 9; far more than the extreme value is clipped, because there are only three levels. */
export const IQ1_AIMS = [9, 12, 15, 19, 24];
