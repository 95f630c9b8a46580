import { createChatTemplate } from '../chat/chat-template.ts';
import type { ChatTemplate } from '../chat/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, Metadata } from '../gguf/types.ts';
import { createTokenizer } from '../tokenizers/tokenizer.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import { abortError, createEngineClient, type Transport } from './engine-client.ts';
import { createModel, type Model } from './model.ts';
import { planSpec, type ResolvedModelConfig } from './model-config.ts';
import { createModelInfo, describeFile } from './model-info.ts';

/** What a platform gives: files, a thread for the engine, a clock and chance. */
export interface RuntimePlatform {
  /** Opens the header of a model file; the caller closes its source. */
  openModelFile(path: string): GgufFile;
  startEngine(): Transport;
  /** Milliseconds on a clock that does not jump. */
  now(): number;
  /** An integer from 0 to 2^53 - 1, different every time. */
  createSeed(): number;
}

/** Loads the model file at `path`: text on this side, everything that computes behind the platform's transport. */
export async function loadModelFile(
  path: string,
  config: ResolvedModelConfig,
  platform: RuntimePlatform,
): Promise<Model> {
  const startMs = platform.now();
  if (config.signal?.aborted) throw abortError(config.signal);
  const gguf = platform.openModelFile(path);
  const { tokenizer, chatTemplate, file, spec } = readTextSide(gguf, path, config);
  const client = createEngineClient(platform.startEngine());
  const { onProgress, signal } = config;
  const report = await client.load(spec, {
    ...(signal === null ? {} : { signal }),
    ...(onProgress === null
      ? {}
      : { onProgress: (doneBytes, totalBytes) => onProgress({ phase: 'load', doneBytes, totalBytes }) }),
  });
  return createModel(
    {
      client,
      tokenizer,
      chatTemplate,
      maxContext: report.maxContext,
      vocabSize: report.shape.vocabSize,
      endIds: endIdsOf(tokenizer, report.shape.vocabSize),
      now: platform.now,
      createSeed: platform.createSeed,
    },
    createModelInfo(file, report, {
      path,
      chatTemplate: chatTemplate.origin,
      loadMs: platform.now() - startMs,
    }),
  );
}

/** Everything the main thread needs of the file, which is closed afterwards; the engine opens it again for itself. */
function readTextSide(gguf: GgufFile, path: string, config: ResolvedModelConfig) {
  try {
    const { metadata } = gguf;
    const architecture = metadata.string('general.architecture');
    const contextLength = metadata.number(`${architecture}.context_length`);
    const spec = planSpec(config, { path, contextLength });
    const tokenizer = createTokenizer(metadata);
    return { spec, tokenizer, chatTemplate: readChatTemplate(metadata, tokenizer), file: describeFile(gguf) };
  } finally {
    gguf.source.close();
  }
}

/** A template that does not parse fails the chats, not the model: plain prompts need none. */
function readChatTemplate(metadata: Metadata, tokenizer: Tokenizer): ChatTemplate {
  const spelling = (id: number | null): string => (id === null ? '' : tokenizer.piece(id));
  try {
    return createChatTemplate({
      source: metadata.string('tokenizer.chat_template', '') || null,
      architecture: metadata.string('general.architecture'),
      bosToken: spelling(tokenizer.bosId),
      eosToken: spelling(tokenizer.eosId),
      specialSpellings: tokenizer.specialSpellings,
    });
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    return {
      origin: 'file',
      render() {
        throw error;
      },
    };
  }
}

function endIdsOf(tokenizer: Tokenizer, vocabSize: number): number[] {
  const ids: number[] = [];
  for (let id = 0; id < Math.min(tokenizer.vocabSize, vocabSize); id++) {
    if (tokenizer.isEndOfGeneration(id)) ids.push(id);
  }
  return ids;
}
