export { createTokenizer } from './tokenizer.ts';
export type {
  DecodeOptions,
  EncodeOptions,
  EncodeTemplateOptions,
  StreamDecoder,
  Tokenizer,
  TokenizerKind,
} from './types.ts';
