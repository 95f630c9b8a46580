import type { Tokenizer } from '../../src/tokenizers/types.ts';

const END = '<|im_end|>';
const CONTROL = ['<|im_start|>', END, '<tool_call>', '</tool_call>', '<|other|>'];
const NUM_BYTES = 256;

/** One token per byte, followed by control tokens of the ChatML and Hermes families. */
export function createByteTokenizer(): Tokenizer {
  const encoder = new TextEncoder();
  const isControl = (id: number): boolean => id >= NUM_BYTES;
  const piece = (id: number): string => CONTROL[id - NUM_BYTES] ?? String.fromCharCode(id);
  const bytesOf = (id: number, isShown: boolean): Uint8Array =>
    isControl(id) ? (isShown ? encoder.encode(piece(id)) : new Uint8Array(0)) : Uint8Array.of(id);
  const encode = (text: string): number[] => [...encoder.encode(text)];
  const createStreamDecoder = ({ skipSpecial = true } = {}) => {
    const decoder = new TextDecoder();
    return {
      push: (id: number) => decoder.decode(bytesOf(id, !skipSpecial), { stream: true }),
      flush: () => decoder.decode(),
    };
  };
  return {
    kind: 'bpe',
    vocabSize: NUM_BYTES + CONTROL.length,
    bosId: null,
    eosId: NUM_BYTES + 1,
    addsBos: false,
    addsEos: false,
    encode: (text) => encode(text),
    encodeTemplate: (text, { guard = '' } = {}) =>
      text
        .split(new RegExp(`(${CONTROL.map((one) => one.replaceAll('|', String.raw`\|`)).join('|')})`))
        .flatMap((part) =>
          CONTROL.includes(part)
            ? [NUM_BYTES + CONTROL.indexOf(part)]
            : encode(guard === '' ? part : part.replaceAll(guard, '')),
        ),
    decode(ids, { skipSpecial = true } = {}) {
      const decoder = createStreamDecoder({ skipSpecial });
      return Array.from(ids, (id) => decoder.push(id)).join('') + decoder.flush();
    },
    createStreamDecoder,
    tokenBytes: (id) => bytesOf(id, false),
    piece,
    idOf: (text) => (CONTROL.includes(text) ? NUM_BYTES + CONTROL.indexOf(text) : null),
    isControl,
    isEndOfGeneration: (id) => piece(id) === END,
    fillIn: null,
    specialSpellings: CONTROL,
  };
}
