import { type ChatTemplateOptions, createChatTemplate } from '../../chat/chat-template.ts';
import { PLAIN_DIALECT } from '../../chat/tools/dialect.ts';
import type { ChatTemplate } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Metadata } from '../../gguf/types.ts';
import { createTokenizer } from '../../tokenizers/tokenizer.ts';
import type { Tokenizer } from '../../tokenizers/types.ts';
import type { PromptContext } from '../prompt.ts';

/** Tokenizer and chat template of a model file. `custom` replaces the template: Jinja, or the name of a built-in one. */
export function readTextSide(metadata: Metadata, custom: string | null = null): PromptContext {
  const tokenizer = createTokenizer(metadata);
  return { tokenizer, chatTemplate: readChatTemplate(metadata, tokenizer, custom) };
}

/** Ids that end an answer, within the model's vocabulary. */
export function endIdsOf(tokenizer: Tokenizer, vocabSize = tokenizer.vocabSize): number[] {
  const ids: number[] = [];
  for (let id = 0; id < Math.min(tokenizer.vocabSize, vocabSize); id++) {
    if (tokenizer.isEndOfGeneration(id)) ids.push(id);
  }
  return ids;
}

/** An invalid template of the file fails chats, not the load, because plain prompts need none. */
function readChatTemplate(metadata: Metadata, tokenizer: Tokenizer, custom: string | null): ChatTemplate {
  const isControl = (special: string): boolean => tokenizer.tokenBytes(tokenizer.idOf(special)!).length === 0;
  const spelling = (id: number | null): string => (id === null ? '' : tokenizer.piece(id));
  try {
    return createChatTemplate({
      source: metadata.string('tokenizer.chat_template', '') || null,
      ...(custom === null ? {} : customSource(custom)),
      architecture: metadata.string('general.architecture'),
      bosToken: spelling(tokenizer.bosId),
      eosToken: spelling(tokenizer.eosId),
      // Control tokens and the unknown token.
      specialSpellings: tokenizer.specialSpellings.filter(isControl),
      otherSpellings: tokenizer.specialSpellings.filter((special) => !isControl(special)),
    });
  } catch (error) {
    if (custom !== null || !(error instanceof RuvLLMError)) throw error;
    return {
      origin: 'file',
      dialect: PLAIN_DIALECT,
      reasoning: null,
      reads: () => false,
      render() {
        throw error;
      },
    };
  }
}

/** Every template has tags; a name has none. */
const customSource = (text: string): Pick<ChatTemplateOptions, 'source' | 'builtin' | 'origin'> =>
  text.includes('{') ? { source: text, origin: 'custom' } : { source: null, builtin: text.trim() };
