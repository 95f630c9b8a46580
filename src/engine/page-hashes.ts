/** One chained hash per whole page of `tokens`: hash i covers all tokens up to the end of page i (FNV-1a over the ids). */
export function hashPages(tokens: readonly number[], pageTokens: number): Uint32Array {
  const hashes = new Uint32Array(Math.floor(tokens.length / pageTokens));
  let hash = 0x811c9dc5;
  for (let page = 0; page < hashes.length; page++) {
    for (let i = page * pageTokens; i < (page + 1) * pageTokens; i++) hash = Math.imul(hash ^ tokens[i]!, 0x01000193);
    hashes[page] = hash;
  }
  return hashes;
}
