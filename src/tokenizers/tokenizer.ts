import { RuvLLMError } from '../core/errors.ts';
import { booleanOption, optional, resolveOptions, stringOption, type OptionReaders } from '../core/options.ts';
import type { Metadata } from '../gguf/types.ts';
import { bpe } from './bpe.ts';
import { markedBpe } from './marked-bpe.ts';
import { createSpecialSplitter, type SpecialSplitter } from './special-splitter.ts';
import { resolveSpecialTokens } from './special-tokens.ts';
import { spm } from './spm.ts';
import { createStreamDecoder } from './stream-decoder.ts';
import type { TextCodec, TokenizerModel } from './text-codec.ts';
import type { DecodeOptions, Tokenizer } from './types.ts';
import { readVocabulary, SILENT, TOKEN, type Vocabulary } from './vocabulary.ts';
import { wordpiece } from './wordpiece.ts';

/** Tokenizer families by `tokenizer.ggml.model`. */
const MODELS: Readonly<Record<string, TokenizerModel>> = { llama: spm, gpt2: bpe, gemma4: markedBpe, bert: wordpiece };

const ENCODE_OPTIONS = { addSpecial: booleanOption(false), isContinuation: booleanOption(false) };
const TEMPLATE_OPTIONS = { ...ENCODE_OPTIONS, guard: optional(stringOption(null)) };
const DECODE_OPTIONS: OptionReaders<Required<DecodeOptions>> = {
  skipSpecial: booleanOption(true),
  keepLeadingSpace: booleanOption(false),
};

const LONE_SURROGATE = /\p{Surrogate}/u;

function findModel(metadata: Metadata): TokenizerModel {
  const name = metadata.string('tokenizer.ggml.model');
  const model = Object.hasOwn(MODELS, name) ? MODELS[name] : undefined;
  if (model !== undefined) return model;
  const supported = Object.keys(MODELS).join(', ');
  throw new RuvLLMError('unsupported', `tokenizer model "${name}" is not supported (known: ${supported})`, {
    data: { tokenizerModel: name },
  });
}

function checkText(text: string): void {
  if (typeof text !== 'string') throw new RuvLLMError('invalid_text', `text must be a string, got ${typeof text}`);
  const index = text.search(LONE_SURROGATE);
  if (index >= 0) {
    const unit = text.charCodeAt(index).toString(16);
    throw new RuvLLMError('invalid_text', `text has a lone surrogate (U+${unit}) at index ${index}`, {
      data: { index },
    });
  }
}

function checkGuard(guard: string, spellings: readonly string[]): void {
  const [character] = guard;
  if (character !== guard) {
    throw new RuvLLMError('invalid_option', `option "guard" must be one character, got ${guard.length} units`);
  }
  const clash = spellings.find((spelling) => spelling.includes(guard));
  if (clash !== undefined) {
    throw new RuvLLMError('invalid_option', `option "guard" occurs in the special token ${clash}`);
  }
}

interface EncodeSettings {
  readonly addSpecial: boolean;
  readonly isContinuation: boolean;
  readonly guard: string | null;
}

function encodePieces(text: string, splitter: SpecialSplitter, codec: TextCodec, settings: EncodeSettings): number[] {
  const { guard } = settings;
  const ids: number[] = [];
  let isAfterSpecial = !settings.isContinuation;
  splitter.split(text, {
    text(piece) {
      const plain = guard === null ? piece : piece.replaceAll(guard, '');
      if (plain === '') return;
      codec.encode(plain, isAfterSpecial, ids);
      isAfterSpecial = false;
    },
    token(id) {
      ids.push(id);
      isAfterSpecial = true;
    },
  });
  return ids;
}

/** Returns the bytes of a token in running text, or of its spelling if special tokens are shown. */
function createByteReader(vocabulary: Vocabulary, codec: TextCodec): (id: number, showsSpecial: boolean) => Uint8Array {
  const { attributes, texts } = vocabulary;
  const none = new Uint8Array(0);
  const encoder = new TextEncoder();
  return (id, showsSpecial) => {
    const bits = attributes[id];
    if (bits === undefined) {
      throw new RuvLLMError('invalid_token', `token id ${id} is outside the vocabulary of ${texts.length}`, {
        data: { id, vocabSize: texts.length },
      });
    }
    if ((bits & SILENT) !== 0) return showsSpecial ? encoder.encode(texts[id]) : none;
    return codec.tokenBytes(id);
  };
}

/** Builds the tokenizer described by a model file's metadata; throws `unsupported` for unsupported families. */
export function createTokenizer(metadata: Metadata): Tokenizer {
  const model = findModel(metadata);
  const vocabulary = readVocabulary(metadata);
  const { texts, attributes, ids } = vocabulary;
  const special = resolveSpecialTokens(metadata, vocabulary, model.defaults(metadata));
  const codec = model.createCodec(metadata, vocabulary, special);
  const untrusted = createSpecialSplitter(vocabulary, 'user-defined');
  const trusted = createSpecialSplitter(vocabulary, 'all');
  const bytesOf = createByteReader(vocabulary, codec);
  const isToken = (id: number): boolean => attributes[id] !== undefined;

  const encodeWith = (text: string, splitter: SpecialSplitter, settings: EncodeSettings): number[] => {
    checkText(text);
    const encoded = encodePieces(text, splitter, codec, settings);
    if (!settings.addSpecial) return encoded;
    if (special.openingId !== null) encoded.unshift(special.openingId);
    if (special.closingId !== null) encoded.push(special.closingId);
    return encoded;
  };
  const startDecoder = (decodeOptions: DecodeOptions | undefined): ReturnType<typeof createStreamDecoder> => {
    const options = resolveOptions('decode', decodeOptions, DECODE_OPTIONS);
    const stripsSpace = codec.hasSpacePrefix && !options.keepLeadingSpace;
    return createStreamDecoder((id) => bytesOf(id, !options.skipSpecial), stripsSpace);
  };

  return {
    kind: model.kind,
    vocabSize: texts.length,
    bosId: special.bosId,
    eosId: special.eosId,
    addsBos: special.openingId !== null,
    addsEos: special.closingId !== null,
    specialSpellings: trusted.spellings,
    encode(text, encodeOptions) {
      const options = resolveOptions('encode', encodeOptions, ENCODE_OPTIONS);
      return encodeWith(text, untrusted, { ...options, guard: null });
    },
    encodeTemplate(text, encodeOptions) {
      const options = resolveOptions('encodeTemplate', encodeOptions, TEMPLATE_OPTIONS);
      if (options.guard !== null) checkGuard(options.guard, trusted.spellings);
      return encodeWith(text, trusted, options);
    },
    decode(encoded, options) {
      const decoder = startDecoder(options);
      let text = '';
      for (let i = 0; i < encoded.length; i++) text += decoder.push(encoded[i]!);
      return text + decoder.flush();
    },
    createStreamDecoder: startDecoder,
    tokenBytes: (id) => bytesOf(id, false),
    piece(id) {
      if (!isToken(id)) bytesOf(id, false);
      return texts[id]!;
    },
    idOf: (piece) => ids.get(piece) ?? null,
    isControl: (id) => isToken(id) && (attributes[id]! & TOKEN.control) !== 0,
    fillIn: special.fillIn,
    isEndOfGeneration: (id) => special.endOfGenerationIds.has(id),
  };
}
