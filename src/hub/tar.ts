import { RuvLLMError } from '../core/errors.ts';
import { createByteQueue, type ByteQueue } from './byte-queue.ts';
import { isSafeRelativePath } from './safe-path.ts';

/** A regular file of an archive; read or leave `body` before requesting the next entry. */
export interface TarEntry {
  readonly path: string;
  readonly sizeBytes: number;
  body(): AsyncGenerator<Uint8Array>;
}

const BLOCK = 512;
/** Extended headers contain a path; npm rejects paths far shorter than this. */
const MAX_EXTENDED_BYTES = 64 << 10;
const MAX_ENTRIES = 100_000;
/** Unpacked bytes of one archive, including skipped files: stops a gzip bomb. */
const MAX_ARCHIVE_BYTES = 64 * 2 ** 30;

const latin = new TextDecoder('latin1');
const utf8 = new TextDecoder('utf-8');

function fail(where: string, reason: string): never {
  throw new RuvLLMError('download_failed', `${where}: ${reason}`, { data: { archive: where } });
}

function text(header: Uint8Array, start: number, length: number, decoder = utf8): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return decoder.decode(end < 0 ? field : field.subarray(0, end));
}

/** Octal text, or base 256 if the top bit is set (sizes from 8 GiB on). */
function number(header: Uint8Array, start: number, length: number, where: string): number {
  if ((header[start]! & 0x80) !== 0) {
    let value = header[start]! & 0x7f;
    for (let i = 1; i < length; i++) value = value * 256 + header[start + i]!;
    if (!Number.isSafeInteger(value)) fail(where, `tar header at byte ${start} has a number beyond 2^53`);
    return value;
  }
  const digits = text(header, start, length, latin).trim();
  if (!/^[0-7]*$/.test(digits)) fail(where, `tar header has ${JSON.stringify(digits)} instead of an octal number`);
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

function checkSum(header: Uint8Array, where: string, position: number): void {
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? 32 : header[i]!;
  const stored = number(header, 148, 8, where);
  if (sum !== stored) fail(where, `tar header at byte ${position} has checksum ${stored}, its bytes sum to ${sum}`);
}

/** Records of the form "<length> <key>=<value>\n", the length counting itself. */
function parsePax(bytes: Uint8Array, where: string): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const match = /^(\d{1,6}) /.exec(latin.decode(bytes.subarray(at, at + 8)));
    const length = Number(match?.[1] ?? 0);
    const end = at + length;
    const record = utf8.decode(bytes.subarray(at + (match?.[0].length ?? 0), end - 1));
    const equals = record.indexOf('=');
    if (match === null || length <= match[0].length || end > bytes.length || equals < 1) {
      fail(where, `extended tar header is broken at byte ${at} of ${bytes.length}`);
    }
    records.set(record.slice(0, equals), record.slice(equals + 1));
    at = end;
  }
  return records;
}

async function readExtended(queue: ByteQueue, sizeBytes: number, where: string): Promise<Uint8Array> {
  if (sizeBytes > MAX_EXTENDED_BYTES) {
    fail(where, `extended tar header of ${sizeBytes} bytes, the limit is ${MAX_EXTENDED_BYTES}`);
  }
  const bytes = await queue.take(sizeBytes);
  if (bytes === null) fail(where, `archive ends at byte ${queue.position} inside an extended header`);
  await queue.skip(padding(sizeBytes));
  return bytes;
}

function padding(sizeBytes: number): number {
  return (BLOCK - (sizeBytes % BLOCK)) % BLOCK;
}

function headerName(header: Uint8Array): string {
  const prefix = text(header, 257, 5, latin) === 'ustar' ? text(header, 345, 155) : '';
  return prefix === '' ? text(header, 0, 100) : `${prefix}/${text(header, 0, 100)}`;
}

/**
 * The regular files of a tar stream, in order. Skips folders and links, so that no write can go through a link; rejects
 * a name that leads out of the archive, a size beyond the stream or a corrupt header.
 */
export async function* readTar(chunks: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<TarEntry> {
  const queue = createByteQueue(chunks);
  let extended = new Map<string, string>();
  try {
    for (let count = 0; ;) {
      const position = queue.position;
      const header = await queue.take(BLOCK);
      if (header === null) fail(where, `archive ends at byte ${queue.position} without an end marker`);
      if (header.every((byte) => byte === 0)) return;
      checkSum(header, where, position);
      if (++count > MAX_ENTRIES) fail(where, `more than ${MAX_ENTRIES} entries`);
      const type = String.fromCharCode(header[156]!);
      const ownSize = number(header, 124, 12, where);
      if (type === 'x' || type === 'g' || type === 'L' || type === 'K') {
        const bytes = await readExtended(queue, ownSize, where);
        if (type === 'x') extended = new Map([...extended, ...parsePax(bytes, where)]);
        if (type === 'L') extended.set('path', text(bytes, 0, bytes.length));
        continue;
      }
      const path = extended.get('path') ?? headerName(header);
      const sizeBytes = extended.has('size') ? Number(extended.get('size')) : ownSize;
      extended = new Map();
      if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0 || queue.position + sizeBytes > MAX_ARCHIVE_BYTES) {
        fail(
          where,
          `entry ${JSON.stringify(path.slice(0, 120))} claims ${sizeBytes} bytes, the limit is ${MAX_ARCHIVE_BYTES}`,
        );
      }
      const isFile = type === '0' || type === '\0' || type === '7';
      if (isFile && !isSafeRelativePath(path)) fail(where, `unsafe entry name ${JSON.stringify(path.slice(0, 120))}`);
      const end = queue.position + sizeBytes;
      if (isFile) yield { path, sizeBytes, body: () => queue.read(end) };
      const missing = await queue.skip(end - queue.position + padding(sizeBytes));
      if (missing > padding(sizeBytes)) {
        fail(where, `entry ${path} claims ${sizeBytes} bytes, the archive ends ${missing} bytes before its end`);
      }
    }
  } finally {
    await queue.close();
  }
}
