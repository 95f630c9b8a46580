import { expect } from 'vitest';

/**
 * Arrays of numbers with the same bytes are equal. Vitest compares them value by value, which takes seconds for a megabyte;
 * others it still compares itself, and shows where they differ.
 */
function haveSameBytes(a: unknown, b: unknown): true | undefined {
  if (!ArrayBuffer.isView(a) || !ArrayBuffer.isView(b)) return undefined;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b) || a.byteLength !== b.byteLength) return undefined;
  const [ours, theirs] = [a, b].map((view) => Buffer.from(view.buffer, view.byteOffset, view.byteLength));
  return ours!.equals(theirs!) || undefined;
}

// Once in each process: this module is loaded once, and the list of testers belongs to the process.
expect.addEqualityTesters([haveSameBytes]);
