/** `(module (memory i64 0 1 shared))` */
const PROBE = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 7, 0, 1);

/** Bits of an address in a WASM memory. */
export type AddressBits = 32 | 64;

/** Whether this engine has WebAssembly Memory64: memories with 64-bit addresses. */
export function hasMemory64(): boolean {
  if (!WebAssembly.validate(PROBE)) return false;
  try {
    // Engines with the proposal behind a flag have older names for these options.
    createMemory(64, 0, 1);
    return true;
  } catch {
    return false;
  }
}

/** A shared memory of `pages` 64 KiB pages that grows up to `maxPages`. */
export function createMemory(addressBits: AddressBits, pages: number, maxPages: number): WebAssembly.Memory {
  if (addressBits === 32) return new WebAssembly.Memory({ initial: pages, maximum: maxPages, shared: true });
  const descriptor = { address: 'i64', initial: BigInt(pages), maximum: BigInt(maxPages), shared: true };
  return new WebAssembly.Memory(descriptor as unknown as WebAssembly.MemoryDescriptor);
}

/** An address as functions of a module take it: an i64 parameter is a BigInt. */
export const toAddress = (addressBits: AddressBits, offset: number): number | bigint =>
  addressBits === 64 ? BigInt(offset) : offset;
