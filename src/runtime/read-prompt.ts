import type { MessageImage } from '../chat/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import { readDataUrl } from './data-url.ts';
import type { Prompt, PromptMessage } from './prompt.ts';

/** A part of a message: text, or a PNG or JPEG as bytes or a data URL. */
export type PromptPart =
  { readonly type: 'text'; readonly text: string } | { readonly type: 'image'; readonly image: Uint8Array | string };

/** A message whose content may have parts; images require a model loaded with `mmproj`. */
export interface PartsMessage extends Omit<PromptMessage, 'content' | 'images'> {
  content: string | readonly PromptPart[];
}

/** Plain text, a conversation, or token ids. */
export type PromptInput = string | readonly (PromptMessage | PartsMessage)[] | readonly number[];

/** Joins the parts of messages; other prompts stay as they are and are checked where they are encoded. */
export function readPrompt(input: PromptInput): Prompt {
  if (!Array.isArray(input)) return input as Prompt;
  return input.map((message: unknown, index) => {
    const { content } = (message ?? {}) as PartsMessage;
    return Array.isArray(content) ? joinParts(message as PartsMessage, `messages[${index}].content`) : message;
  }) as unknown as Prompt;
}

function joinParts({ content, ...message }: PartsMessage, path: string): PromptMessage {
  const images: MessageImage[] = [];
  let text = '';
  for (const [index, part] of (content as readonly PromptPart[]).entries()) {
    const where = `${path}[${index}]`;
    if (part?.type === 'text' && typeof part.text === 'string') text += part.text;
    else if (part?.type === 'image') images.push({ offset: text.length, data: readBytes(part.image, where) });
    else throw new RuvLLMError('invalid_option', `${where} must be a part of type text or image`);
  }
  return { ...message, content: text, ...(images.length === 0 ? {} : { images }) };
}

function readBytes(image: unknown, where: string): Uint8Array {
  if (image instanceof Uint8Array) return image;
  if (typeof image === 'string') return readDataUrl(image, `${where}.image`);
  throw new RuvLLMError('invalid_option', `${where}.image must be a Uint8Array or a data URL`);
}
