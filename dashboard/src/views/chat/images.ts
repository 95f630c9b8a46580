import { signal } from '@preact/signals';
import { onSignOut } from '../../app/session.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { type ChatImage, MAX_IMAGES } from './chat-image.ts';

const text = messages.chat.images;

const MAX_FILE_BYTES = 20 * 2 ** 20;
/** Encoders scale images to squares of about 500 pixels. Larger ones would only fill requests and stored conversations. */
const MAX_SIDE_PX = 1024;
const JPEG_QUALITY = 0.85;

/** Images of unsent messages, by conversation. */
const unsent = signal<ReadonlyMap<string, readonly ChatImage[]>>(new Map());
onSignOut(() => void (unsent.value = new Map()));

const setUnsent = (conversationId: string, images: readonly ChatImage[]): void =>
  void (unsent.value = new Map([...unsent.value, [conversationId, images]]));

export const unsentImages = (conversationId: string): readonly ChatImage[] => unsent.value.get(conversationId) ?? [];

export function removeImage(conversationId: string, image: ChatImage): void {
  setUnsent(conversationId, unsentImages(conversationId).filter((one) => one !== image)); // prettier-ignore
}

/** Returns the images of the message that is being sent, and forgets them. */
export function takeImages(conversationId: string): readonly ChatImage[] {
  const images = unsentImages(conversationId);
  setUnsent(conversationId, []);
  return images;
}

/** Adds a file to the next message; returns why it cannot, or null. */
export async function attachImage(conversationId: string, file: File): Promise<string | null> {
  const name = visibleText(file.name);
  if (unsentImages(conversationId).length >= MAX_IMAGES) return text.tooMany(name, MAX_IMAGES);
  if (file.size > MAX_FILE_BYTES) return text.tooLarge(name, MAX_FILE_BYTES);
  try {
    const image = { name: file.name, url: await toJpeg(file) };
    setUnsent(conversationId, [...unsentImages(conversationId), image]);
    return null;
  } catch {
    return text.unreadable(name);
  }
}

/** Scales an image down; any format that the browser reads becomes one that the server reads, turned as its EXIF data says. */
async function toJpeg(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, MAX_SIDE_PX / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext('2d')!;
  // Transparent parts would be black.
  context.fillStyle = 'white';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL('image/jpeg', JPEG_QUALITY);
}
