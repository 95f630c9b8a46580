import { PLAIN_DIALECT } from '../../src/chat/tools/dialect.ts';
import type { ChatTemplate } from '../../src/chat/types.ts';
import type { Tokenizer } from '../../src/tokenizers/types.ts';
import { TOY_VOCAB } from './toy-model.ts';

/** Ids 3 … 60 are these characters; 0 is BOS, 1 is EOS, 2 is half of "é", twice in a row the whole. */
const LETTERS = ' abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?\n'.slice(0, TOY_VOCAB - 3);

/** A tokenizer for the toy model: one token per letter, except one character that takes two. */
export function createToyTokenizer(options: { addsBos?: boolean } = {}): Tokenizer {
  const addsBos = options.addsBos ?? true;
  const letterOf = (id: number): string => LETTERS[id - 3] ?? '';
  const idOf = (letter: string): number => LETTERS.indexOf(letter) + 3;
  const encodeText = (text: string): number[] => [...text].map(idOf);
  const createStreamDecoder = ({ keepLeadingSpace = false } = {}) => {
    let isFirst = true;
    let hasHalf = false;
    return {
      push(id: number): string {
        if (id === 2) {
          hasHalf = !hasHalf;
          return hasHalf ? '' : 'é';
        }
        const isDropped = isFirst && letterOf(id) === ' ' && !keepLeadingSpace;
        isFirst = false;
        const broken = hasHalf ? '\ufffd' : '';
        hasHalf = false;
        return broken + (isDropped ? '' : letterOf(id));
      },
      flush: () => (hasHalf ? '\ufffd' : ''),
    };
  };
  return {
    kind: 'bpe',
    vocabSize: TOY_VOCAB,
    bosId: 0,
    eosId: 1,
    addsBos,
    addsEos: false,
    encode: (text, { addSpecial = false } = {}) => [...(addSpecial && addsBos ? [0] : []), ...encodeText(text)],
    encodeTemplate: (text) =>
      text.split('<s>').flatMap((part, index) => [...(index > 0 ? [0] : []), ...encodeText(part)]),
    decode(ids) {
      const decoder = createStreamDecoder();
      return Array.from(ids, (id) => decoder.push(id)).join('') + decoder.flush();
    },
    createStreamDecoder,
    tokenBytes: (id) => new TextEncoder().encode(letterOf(id)),
    piece: letterOf,
    idOf,
    isControl: (id) => id < 2,
    isEndOfGeneration: (id) => id === 1,
    fillIn: null,
    specialSpellings: ['<s>'],
  };
}

/** Renders "<s>role content." per message, with or without the BOS spelling. */
export function createToyTemplate(spellsBos = true): ChatTemplate {
  return {
    origin: 'toy',
    dialect: PLAIN_DIALECT,
    reasoning: null,
    reads: () => false,
    render: (messages) => ({
      text: (spellsBos ? '<s>' : '') + messages.map(({ role, content }) => `${role} ${content}.`).join(''),
      guard: '\u2063',
      beginsWithBos: spellsBos,
    }),
  };
}
