import { readBase64, readDataUrl } from '../../runtime/data-url.ts';
import type { MessageImage } from '../../runtime/lower-layers.ts';
import { type Field, ignoredFields, readFields, requiredField, stringField } from './fields.ts';

/** The text of a message and its images. */
export interface Content {
  readonly text: string;
  readonly images: readonly MessageImage[];
}

/** More than any image that is accepted. */
const MAX_CHARS = 2 ** 25;
const text = stringField(MAX_CHARS, 1);

/** A data URL. */
export const urlField: Field<Uint8Array> = {
  schema: { type: 'string', description: 'A data URL of a PNG or JPEG; other URLs are not fetched.' },
  read: (value, path) => readDataUrl(text.read(value, path), path),
};

/** The base64 text of an image. */
export const base64Field: Field<Uint8Array> = {
  schema: { type: 'string', description: 'A PNG or JPEG in base64.' },
  read: (value, path) => readBase64(text.read(value, path), path),
};

const IMAGE_URL = { url: requiredField(urlField), ...ignoredFields('detail') };

/** An object with a data URL, or the URL alone. */
export const imageUrlField: Field<Uint8Array> = {
  schema: { type: 'object', properties: { url: urlField.schema }, required: ['url'] },
  read: (value, path) =>
    typeof value === 'string' ? urlField.read(value, path) : readFields(value, IMAGE_URL, { path }).url,
};

/** Joins texts and images in their order. */
export function joinContent(parts: readonly (string | Uint8Array)[]): Content {
  const images: MessageImage[] = [];
  let joined = '';
  for (const part of parts) {
    if (typeof part === 'string') joined += part;
    else images.push({ offset: joined.length, data: part });
  }
  return { text: joined, images };
}
