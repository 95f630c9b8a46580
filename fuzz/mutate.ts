import type { Random } from '../src/core/random.ts';
import { encode } from './target.ts';

const INTERESTING = [0, 1, 0x7f, 0x80, 0xff, 0x20, 0x22, 0x5b, 0x7b];
const INTEGERS = [0, 1, -1, 255, 256, 65_535, 65_536, 2 ** 31 - 1, -(2 ** 31), 2 ** 32 - 1];
const MAX_BYTES = 65_536;

/** A few random changes of one input, or a mixture of two. */
export function mutate(random: Random, input: Uint8Array, other: Uint8Array, words: readonly string[]): Uint8Array {
  const below = (count: number): number => Math.floor(random.next() * count);
  let bytes = Uint8Array.from(input);
  const insert = (at: number, part: Uint8Array): void => {
    bytes = Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(at)]);
  };
  const remove = (at: number, count: number): void => {
    bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + count)]);
  };
  const CHANGES: readonly (() => void)[] = [
    () => bytes.length > 0 && (bytes[below(bytes.length)]! ^= 1 << below(8)),
    () => bytes.length > 0 && (bytes[below(bytes.length)] = INTERESTING[below(INTERESTING.length)]!),
    () =>
      insert(
        below(bytes.length + 1),
        Uint8Array.from({ length: 1 + below(4) }, () => below(256)),
      ),
    () => remove(below(bytes.length), 1 + below(Math.max(1, bytes.length >> 3))),
    () => {
      const from = below(bytes.length);
      insert(below(bytes.length + 1), bytes.slice(from, from + 1 + below(64)));
    },
    () => words.length > 0 && insert(below(bytes.length + 1), encode(words[below(words.length)]!)),
    () => {
      if (bytes.length < 8) return;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      const value = INTEGERS[below(INTEGERS.length)]!;
      const at = below(bytes.length - 7);
      if (random.next() < 0.5) view.setInt32(at, value | 0, true);
      else view.setBigInt64(at, BigInt(value), true);
    },
    () => {
      const at = below(bytes.length + 1);
      bytes = Buffer.concat([bytes.subarray(0, at), other.subarray(below(other.length + 1))]);
    },
  ];
  const numChanges = random.next() < 0.5 ? 1 : 2 + below(4);
  for (let i = 0; i < numChanges; i++) CHANGES[below(CHANGES.length)]!();
  return Uint8Array.from(bytes.subarray(0, MAX_BYTES));
}
