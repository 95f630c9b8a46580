/** A name that nobody else has. Not `crypto.randomUUID`: a page of plain HTTP, on a machine of the same network, has none. */
export function createId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
