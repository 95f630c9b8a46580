/** Values whose mean square tells large weights from small ones: a super-block, or a row without whole ones. */
const CHUNK = 256;
/** Of the mean importance: a column that no text used keeps a little, or its block would have no scale. */
const LEAST = 1e-4;

/**
 * Weights of the squared errors of a row: the importance of its column (the mean square of its inputs) times the root of its own square
 * and the mean one, as llama.cpp weighs them. Large weights of a block count more, because rounding must not clip them.
 */
export function writeErrorWeights(
  values: Float32Array,
  importance: Float32Array,
  importanceOffset: number,
  numCols: number,
  out: Float32Array,
): void {
  let sum = 0;
  for (let col = 0; col < numCols; col++) sum += importance[importanceOffset + col]!;
  const least = sum > 0 ? (LEAST * sum) / numCols : 1;
  const chunk = numCols % CHUNK === 0 ? CHUNK : numCols;
  for (let row = 0; row < values.length; row += numCols) {
    for (let start = row; start < row + numCols; start += chunk) {
      let squares = 0;
      for (let i = start; i < start + chunk; i++) squares += values[i]! ** 2;
      const mean = squares / chunk;
      for (let i = start; i < start + chunk; i++) {
        const weight = Math.max(importance[importanceOffset + i - row]!, least);
        out[i] = weight * Math.sqrt(mean + values[i]! ** 2);
      }
    }
  }
}
