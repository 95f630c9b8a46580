import type { ChatMessage } from '../chat/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { SequenceImage } from '../engine/types.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import type { VisionFamily } from '../vision/families.ts';

/** How images stand in a prompt; plain data. */
export interface ImagePrompt extends Pick<VisionFamily, 'before' | 'placeholder' | 'after'> {
  /** Tokens of the prompt per image, without those around it. */
  readonly numTokens: number;
}

/** Encodes images in a thread of its own. */
export interface Vision {
  readonly prompt: ImagePrompt;
  /** Rows of the language model for a PNG or JPEG, and their SHA-256. Typed errors for other bytes. Tenants take turns. */
  encode(data: Uint8Array, signal: AbortSignal | null, tenant: string): Promise<EncodedImage>;
  dispose(): Promise<void>;
}

export type EncodedImage = Pick<SequenceImage, 'hash' | 'values'>;

export const MAX_IMAGES = 32;

/** Private characters: one that no message contains marks the places of images. */
const [FIRST_MARK, LAST_MARK] = [0xf000, 0xf8ff];

const hasImages = ({ images }: ChatMessage): boolean => images !== undefined && images.length > 0;

/** The images of a prompt in their order. */
export function imagesOf(prompt: unknown): readonly Uint8Array[] {
  if (!Array.isArray(prompt)) return [];
  return prompt.flatMap((message: ChatMessage | number | null) =>
    typeof message === 'number' ? [] : (message?.images ?? []).map(({ data }) => data),
  );
}

/** The messages without the bytes of images, which only the encoder reads. */
export function withoutImageData<Message>(messages: readonly Message[]): readonly Message[] {
  const empty = new Uint8Array(0);
  return messages.map((message) => {
    const images = (message as ChatMessage | null)?.images; // checked where the prompt is encoded
    return images === undefined
      ? message
      : { ...message, images: images.map(({ offset }) => ({ offset, data: empty })) };
  });
}

/** Puts a mark at the place of each image, for a template that knows only text. */
export function markImages(messages: readonly ChatMessage[], prompt: ImagePrompt | null) {
  if (!messages.some(hasImages)) return { messages, numImages: 0, mark: '' };
  if (prompt === null) {
    const message = 'this model cannot see images: it was loaded without a projector (option "mmproj")';
    throw new RuvLLMError('unsupported', message, { data: { option: 'images' } });
  }
  const numImages = messages.reduce((sum, { images = [] }) => sum + images.length, 0);
  if (numImages > MAX_IMAGES) {
    throw new RuvLLMError('invalid_option', `${numImages} images in a prompt; the limit is ${MAX_IMAGES}`, {
      data: { numImages, maxImages: MAX_IMAGES },
    });
  }
  const mark = chooseMark(messages);
  const marked = messages.map(({ images = [], ...message }) => {
    let content = '';
    let copied = 0;
    for (const { offset } of images.toSorted((a, b) => a.offset - b.offset)) {
      content += message.content.slice(copied, offset) + mark;
      copied = offset;
    }
    return { ...message, content: content + message.content.slice(copied) };
  });
  return { messages: marked, numImages, mark };
}

function chooseMark(messages: readonly ChatMessage[]): string {
  const text = JSON.stringify(withoutImageData(messages));
  for (let unit = FIRST_MARK; unit <= LAST_MARK; unit++) {
    const mark = String.fromCharCode(unit);
    if (!text.includes(mark)) return mark;
  }
  throw new RuvLLMError('invalid_text', 'the messages use all private characters');
}

/** The rendered text with the spelling of an image in place of each mark. */
export function spellImages(text: string, mark: string, { before, placeholder, after }: ImagePrompt): string {
  return text.replaceAll(mark, `${before}${placeholder}${after}`);
}

/** The ids with as many placeholders per image as it has rows. */
export function expandImages(
  ids: readonly number[],
  numImages: number,
  { placeholder, numTokens }: ImagePrompt,
  tokenizer: Pick<Tokenizer, 'idOf'>,
): number[] {
  const placeholderId = tokenizer.idOf(placeholder);
  const numFound = ids.filter((id) => id === placeholderId).length;
  if (numFound !== numImages) {
    const message = `the chat template wrote ${numFound} of ${numImages} images into the prompt`;
    throw new RuvLLMError('template_error', message, { data: { numFound, numImages } });
  }
  return ids.flatMap((id) => (id === placeholderId ? Array.from({ length: numTokens }, () => id) : [id]));
}

/** Encodes the images of a prompt and finds their places among its ids. */
export async function encodeImages(
  { vision, tokenizer }: { readonly vision: Vision | null; readonly tokenizer: Pick<Tokenizer, 'idOf'> },
  prompt: unknown,
  ids: readonly number[],
  { signal, tenant }: { readonly signal: AbortSignal | null; readonly tenant: string },
): Promise<readonly SequenceImage[]> {
  const files = imagesOf(prompt);
  if (files.length === 0 || vision === null) return [];
  const { placeholder, numTokens: numRows } = vision.prompt;
  const placeholderId = tokenizer.idOf(placeholder)!;
  const encoded = await Promise.all(files.map((data) => vision.encode(data, signal, tenant)));
  let end = 0;
  return encoded.map((image) => {
    const start = ids.indexOf(placeholderId, end);
    end = start + numRows;
    return { start, numRows, ...image };
  });
}
