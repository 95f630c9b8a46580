import { invalidImage, unsupportedImage } from './image-error.ts';
import { IMAGE_LIMITS } from './image-limits.ts';

export interface ImageHeader {
  readonly format: 'png' | 'jpeg';
  readonly width: number;
  readonly height: number;
}

const ascii = (bytes: Uint8Array, start: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(start, start + length));

const startsWith = (bytes: Uint8Array, ...values: readonly number[]): boolean =>
  values.every((value, i) => bytes[i] === value);

/** Formats that people send and this version does not decode, by their first bytes. */
const OTHER_FORMATS: readonly [string, (bytes: Uint8Array) => boolean][] = [
  ['GIF', (bytes) => ascii(bytes, 0, 4) === 'GIF8'],
  ['WebP', (bytes) => ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 4) === 'WEBP'],
  ['AVIF', (bytes) => ascii(bytes, 4, 8) === 'ftypavif'],
  ['HEIC', (bytes) => ['ftypheic', 'ftypheix', 'ftypmif1'].includes(ascii(bytes, 4, 8))],
  ['BMP', (bytes) => ascii(bytes, 0, 2) === 'BM'],
  ['TIFF', (bytes) => startsWith(bytes, 0x49, 0x49, 0x2a, 0) || startsWith(bytes, 0x4d, 0x4d, 0, 0x2a)],
  ['SVG', (bytes) => /^\s*<(?:\?xml|svg)/.test(ascii(bytes, 0, 64))],
];

/** Reads format and size and checks them against the limits, before anything is decoded. */
export function readImageHeader(bytes: Uint8Array): ImageHeader {
  const { maxBytes, maxPixels, maxSide } = IMAGE_LIMITS;
  if (bytes.length === 0) throw invalidImage('it has no bytes');
  if (bytes.length > maxBytes) {
    throw invalidImage(`it has ${bytes.length} bytes, the limit is ${maxBytes}`, { sizeBytes: bytes.length, maxBytes });
  }
  const header = readSize(bytes);
  const { width, height } = header;
  if (width < 1 || height < 1 || width > maxSide || height > maxSide || width * height > maxPixels) {
    const message = `${width} × ${height} pixels; the limits are ${maxSide} per side and ${maxPixels} in all`;
    throw invalidImage(message, { width, height, maxSide, maxPixels });
  }
  return header;
}

function readSize(bytes: Uint8Array): ImageHeader {
  if (startsWith(bytes, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return readPngSize(bytes);
  if (startsWith(bytes, 0xff, 0xd8, 0xff)) return readJpegSize(bytes);
  const other = OTHER_FORMATS.find(([, matches]) => matches(bytes));
  if (other !== undefined) throw unsupportedImage(`the format is ${other[0]}; send PNG or JPEG`, { format: other[0] });
  throw invalidImage('it starts like neither PNG nor JPEG');
}

function readPngSize(bytes: Uint8Array): ImageHeader {
  if (bytes.length < 33 || ascii(bytes, 12, 4) !== 'IHDR') throw invalidImage('the PNG ends before its header');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { format: 'png', width: view.getUint32(16), height: view.getUint32(20) };
}

/** Start of frame, except for the three markers in this range that are tables. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

function readJpegSize(bytes: Uint8Array): ImageHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 2; at + 9 < bytes.length;) {
    if (bytes[at] !== 0xff) throw invalidImage(`the JPEG has no marker at byte ${at}`, { at });
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      at++; // padding
      continue;
    }
    if (isFrame(marker)) return { format: 'jpeg', width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    if (marker === 0xda || marker === 0xd9) break;
    at += 2 + view.getUint16(at + 2);
  }
  throw invalidImage('the JPEG ends before its size');
}
