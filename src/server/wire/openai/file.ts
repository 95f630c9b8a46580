import type { StoredFile } from '../../batches/file-store.ts';
import { MAX_RETENTION_MS } from '../../batches/types.ts';
import { refusal } from '../../errors.ts';
import { choiceField, type Field, integerField, invalid, readFields, requiredField } from '../fields.ts';

/** A file in OpenAI's format. */
export function writeFile({ id, name, purpose, numBytes, createdMs, expiresMs }: StoredFile): { readonly id: string } {
  return {
    id,
    object: 'file',
    bytes: numBytes,
    created_at: Math.floor(createdMs / 1000),
    expires_at: Math.floor(expiresMs / 1000),
    filename: name,
    purpose,
    status: 'processed',
  } as { readonly id: string };
}

const EXPIRY_FIELDS = {
  anchor: requiredField(choiceField(['created_at'])),
  seconds: requiredField(integerField(3600, MAX_RETENTION_MS / 1000)),
};

/** How long something is kept, in milliseconds: `{ "anchor": "created_at", "seconds": 3600 }`. */
export const expiryField: Field<number> = {
  schema: { type: 'object' },
  read: (value, path) => readFields(value, EXPIRY_FIELDS, { path }).seconds * 1000,
};

/** An upload: the text of the file and its settings. */
export interface Upload {
  readonly name: string;
  readonly text: string;
  readonly numBytes: number;
  readonly retentionMs: number;
}

const FIELD_NAMES = new Set(['file', 'purpose', 'expires_after[anchor]', 'expires_after[seconds]']);

/** Reads the form of `POST /v1/files`. */
export async function readUpload(form: FormData): Promise<Upload> {
  for (const key of form.keys()) {
    if (!FIELD_NAMES.has(key)) throw refusal(400, 'unknown_parameter', `unknown field '${key.slice(0, 80)}'`, { param: key.slice(0, 80) }); // prettier-ignore
  }
  const purpose = form.get('purpose');
  if (purpose !== 'batch') throw invalid('purpose', '"batch", the only purpose of files here', purpose);
  const file = form.get('file');
  if (file === null || typeof file === 'string') throw invalid('file', 'a file with a name', file);
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text: string;
  try {
    // With its byte order mark, so that the content is the same when it is read.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw refusal(400, 'invalid_file', `the file of ${bytes.length} bytes is not UTF-8`, {
      param: 'file',
      cause: error,
    });
  }
  const [anchor, seconds] = [form.get('expires_after[anchor]'), form.get('expires_after[seconds]')];
  const hasExpiry = anchor !== null || seconds !== null;
  const retentionMs = hasExpiry ? expiryField.read({ anchor, seconds: Number(seconds) }, 'expires_after') : MAX_RETENTION_MS; // prettier-ignore
  return { name: file.name.slice(0, 255), text, numBytes: bytes.length, retentionMs };
}
