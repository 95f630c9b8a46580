import type { Follow, Word } from '../recorded-parts.ts';

const RECORD_WORDS = 32;
const COUNTER_WORD = 31;
const MAX_RECORDS = 2048;

export const PROGRAM_BYTES = MAX_RECORDS * RECORD_WORDS * 4;

/** Records operations in the arena; kernels read them by the same word numbers. */
export interface Program {
  readonly numRecords: number;
  /** `words` go to word 2 and up; a `{ f32 }` is stored as its bits. */
  record(opcode: number, words: readonly Word[], follow?: Follow): void;
  clear(): void;
}

/** `onFull` must run and clear the program: the table has a fixed size, steps do not. */
export function createProgram(buffer: ArrayBufferLike, offset: number, onFull: () => void): Program {
  const ints = new Int32Array(buffer, offset, PROGRAM_BYTES / 4);
  const floats = new Float32Array(buffer, offset, PROGRAM_BYTES / 4);
  let numRecords = 0;
  return {
    get numRecords() {
      return numRecords;
    },
    record(opcode, words, follow = 'barrier') {
      if (numRecords === MAX_RECORDS) onFull();
      const base = numRecords * RECORD_WORDS;
      ints[base] = opcode;
      // The last record before a forced flush needs a barrier, too.
      ints[base + 1] = follow !== 'nothing' || numRecords === MAX_RECORDS - 1 ? 1 : 0;
      ints[base + COUNTER_WORD] = 0;
      for (let i = 0; i < words.length; i++) {
        const word = words[i]!;
        if (typeof word === 'number') ints[base + 2 + i] = word;
        else floats[base + 2 + i] = word.f32;
      }
      numRecords++;
    },
    clear() {
      numRecords = 0;
    },
  };
}
