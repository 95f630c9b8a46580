import type { SafetensorsFile } from '../safetensors.ts';
import type { ConvertOptions } from './llama2c.ts';

/** The parts of a Hugging Face checkpoint, with parsed JSON files. */
export interface HfCheckpoint {
  readonly config: unknown;
  /** One or more shards. They must stay open until the result is written. */
  readonly files: readonly SafetensorsFile[];
  readonly tokenizerJson?: unknown;
  /** The bytes of a SentencePiece tokenizer.model, used without a tokenizer.json. */
  readonly tokenizerModel?: Uint8Array;
  /** tokenizer_config.json: the chat template and whether BOS is added. */
  readonly tokenizerConfig?: unknown;
  /** preprocessor_config.json: the mean and deviation of colours in images. */
  readonly preprocessorConfig?: unknown;
}

/** Options of a conversion; every field has a default. */
export interface HfConvertOptions extends ConvertOptions {
  /** `tokenizer.ggml.pre` if the splitting rule in tokenizer.json is unknown; default null: detect. */
  preTokenizer: string | null;
}
