/** A body as one array, or the part that was read and the iterator of the rest if it has more than `maxBytes`. */
export async function readUpTo(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly rest: AsyncIterator<Uint8Array> | null }> {
  const iterator = body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  while (sizeBytes <= maxBytes) {
    const { value, done } = await iterator.next();
    if (done === true) return { bytes: join(chunks, sizeBytes), rest: null };
    chunks.push(value);
    sizeBytes += value.length;
  }
  return { bytes: join(chunks, sizeBytes), rest: iterator };
}

function join(chunks: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const bytes = new Uint8Array(sizeBytes);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
