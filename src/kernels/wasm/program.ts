import type { Follow, Word } from '../recorded-parts.ts';
import type { AddressBits } from './memory64.ts';

const RECORD_WORDS = 32;
const COUNTER_WORD = 31;
const MAX_RECORDS = 2048;

/** With 64-bit addresses, the upper halves of a record's words follow the lower ones (assembly/control.ts). */
const recordStride = (addressBits: AddressBits): number => (addressBits / 32) * RECORD_WORDS;

export const programBytes = (addressBits: AddressBits): number => MAX_RECORDS * recordStride(addressBits) * 4;

/** Records operations in the arena; kernels read them by the same word numbers. */
export interface Program {
  readonly numRecords: number;
  /** `words` go to word 2 and up; a `{ f32 }` is stored as its bits. */
  record(opcode: number, words: readonly Word[], follow?: Follow): void;
  clear(): void;
}

/** `onFull` must run and clear the program: the table has a fixed size, steps do not. */
export function createProgram(
  buffer: ArrayBufferLike,
  offset: number,
  addressBits: AddressBits,
  onFull: () => void,
): Program {
  const stride = recordStride(addressBits);
  const ints = new Int32Array(buffer, offset, MAX_RECORDS * stride);
  const floats = new Float32Array(buffer, offset, MAX_RECORDS * stride);
  let numRecords = 0;
  return {
    get numRecords() {
      return numRecords;
    },
    record(opcode, words, follow = 'barrier') {
      if (numRecords === MAX_RECORDS) onFull();
      const base = numRecords * stride;
      ints[base] = opcode;
      // The last record before a forced flush needs a barrier, too.
      ints[base + 1] = follow !== 'nothing' || numRecords === MAX_RECORDS - 1 ? 1 : 0;
      ints[base + COUNTER_WORD] = 0;
      for (let i = 0; i < words.length; i++) {
        const word = words[i]!;
        if (typeof word === 'number') {
          ints[base + 2 + i] = word;
          if (addressBits === 64) ints[base + RECORD_WORDS + 2 + i] = Math.floor(word / 2 ** 32);
        } else floats[base + 2 + i] = word.f32;
      }
      numRecords++;
    },
    clear() {
      numRecords = 0;
    },
  };
}
