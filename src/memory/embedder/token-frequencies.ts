/** Marks of word starts and continuations in vocabularies. */
const MARKS = /^(?:[\u2581\u0120]|##)/;
/** Byte pieces and unused ones. */
const NO_WORDS = /^(?:<0x[0-9A-Fa-f]{2}>|\[unused\d+\])$/;
/** Mandelbrot's shift: without it the first rank would have a tenth of all tokens. */
const SHIFT = 2.7;

function isOneCharacter(piece: string): boolean {
  const word = piece.replace(MARKS, '');
  return word.length < 2 || (word.length === 2 && word.codePointAt(0)! > 0xffff);
}

/**
 * Estimates the frequency of each token from the vocabulary: pieces are in order of rank, and Zipf's law gives the rest. Single
 * characters, which some vocabularies have at their end, and pieces that are not words take the first rank; otherwise full stops
 * and commas would count as the rarest.
 */
export function estimateFrequencies(pieces: readonly string[], numRows: number): Float32Array {
  // Tables may be padded; rows without a piece are never used.
  const ranks = new Float64Array(numRows);
  let next = 0;
  let sum = 0;
  for (const [id, piece] of pieces.slice(0, numRows).entries()) {
    if (isOneCharacter(piece) || NO_WORDS.test(piece)) continue;
    ranks[id] = next++;
    sum += 1 / (ranks[id] + SHIFT);
  }
  return Float32Array.from(ranks, (rank) => 1 / (rank + SHIFT) / Math.max(sum, 1));
}
