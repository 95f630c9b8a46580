/** Returns a random 128-bit id. `crypto.randomUUID` is missing on pages served over plain HTTP from another machine. */
export function createId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
