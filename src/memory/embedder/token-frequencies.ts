/** Word starts as vocabularies write them, and continuations. */
const MARKS = /^(?:[\u2581\u0120]|##)/;
/** Pieces that stand for a byte, or for nothing yet. */
const NO_WORDS = /^(?:<0x[0-9A-Fa-f]{2}>|\[unused\d+\])$/;
/** Mandelbrot's shift: without it the first rank would have a tenth of all tokens. */
const SHIFT = 2.7;

function isOneCharacter(piece: string): boolean {
  const word = piece.replace(MARKS, '');
  return word.length < 2 || (word.length === 2 && word.codePointAt(0)! > 0xffff);
}

/**
 * How often each token occurs, adding up to about 1, from the vocabulary alone: pieces are in order of rank, and Zipf's law says the
 * rest. Not in that order are single characters, which some vocabularies have at their very end: full stops and commas, more frequent
 * than any word, would count as the rarest of all. They take the first rank, and so do pieces that are no words.
 */
export function estimateFrequencies(pieces: readonly string[], numRows: number): Float32Array {
  // Tables may be padded: rows without a piece are never met, and any rank does.
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
