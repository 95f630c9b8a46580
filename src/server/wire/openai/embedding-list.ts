/** The response of `/v1/embeddings`. */
export interface EmbeddingList {
  /** Not in OpenAI's API; Mistral's client requires one. */
  readonly id: string;
  readonly model: string;
  readonly vectors: readonly Float32Array[];
  readonly isBase64: boolean;
  readonly usage: { readonly promptTokens: number; readonly totalTokens: number };
}

/** Values per piece: about 3 ms of work. */
const PIECE_VALUES = 8192;

/** Whether the list is short enough to be written at once. */
export function isShortList({ vectors }: EmbeddingList): boolean {
  return vectors.length * (vectors[0]?.length ?? 0) <= PIECE_VALUES;
}

/** The JSON text in pieces: 2,000 long vectors take seconds, and hundreds of megabytes as one text. */
export function* writeEmbeddingList({ id, model, vectors, isBase64, usage }: EmbeddingList): Generator<string> {
  let piece = `{"id":${JSON.stringify(id)},"object":"list","model":${JSON.stringify(model)},"data":[`;
  let numValues = 0;
  for (const [index, vector] of vectors.entries()) {
    const embedding = isBase64 ? toBase64(vector) : Array.from(vector);
    piece += `${index === 0 ? '' : ','}${JSON.stringify({ object: 'embedding', index, embedding })}`;
    numValues += vector.length;
    if (numValues < PIECE_VALUES) continue;
    yield piece;
    piece = '';
    numValues = 0;
  }
  yield `${piece}],"usage":${JSON.stringify({ prompt_tokens: usage.promptTokens, total_tokens: usage.totalTokens })}}`;
}

/** Little-endian float32. */
function toBase64(vector: Float32Array): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4));
  vector.forEach((value, index) => view.setFloat32(index * 4, value, true));
  let binary = '';
  for (const byte of new Uint8Array(view.buffer)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
