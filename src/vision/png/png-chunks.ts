import { invalidImage, unsupportedImage } from '../image-error.ts';

export interface PngHeader {
  readonly width: number;
  readonly height: number;
  readonly bitDepth: number;
  readonly colourType: number;
  readonly isInterlaced: boolean;
}

export interface PngChunks {
  readonly header: PngHeader;
  /** RGB triples of an indexed image; null: none. */
  readonly palette: Uint8Array | null;
  /** The compressed pixels. */
  readonly data: Uint8Array<ArrayBuffer>;
}

/** Samples per pixel by colour type: grey, RGB, palette, grey with alpha, RGBA. */
export const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

const BIT_DEPTHS: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

/** Reads the chunks of a PNG; animated ones are refused. */
export function readPngChunks(bytes: Uint8Array): PngChunks {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let header: PngHeader | null = null;
  let palette: Uint8Array | null = null;
  let hasEnd = false;
  const parts: Uint8Array[] = [];
  for (let at = 8; !hasEnd;) {
    if (at + 12 > bytes.length) throw invalidImage(`the PNG is truncated at byte ${bytes.length}`);
    const length = view.getUint32(at);
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const body = bytes.subarray(at + 8, at + 8 + length);
    if (at + 12 + length > bytes.length) {
      throw invalidImage(`chunk ${type} ends at byte ${at + 12 + length}, the PNG at ${bytes.length}`);
    }
    if (type === 'acTL') throw unsupportedImage('the PNG is animated; send a single image', { format: 'APNG' });
    if (type === 'IHDR') header ??= readHeader(view, at + 8, length);
    else if (type === 'PLTE') palette = body;
    else if (type === 'IDAT') parts.push(body);
    hasEnd = type === 'IEND';
    at += 12 + length;
  }
  if (header === null || parts.length === 0) throw invalidImage('the PNG has no pixels');
  if (header.colourType === 3 && (palette === null || palette.length % 3 !== 0)) {
    throw invalidImage('the PNG has no palette');
  }
  return { header, palette, data: concat(parts) };
}

function readHeader(view: DataView, at: number, length: number): PngHeader {
  if (length !== 13) throw invalidImage(`the PNG's header has ${length} bytes instead of 13`);
  const [bitDepth, colourType, compression, filter, interlace] = [8, 9, 10, 11, 12].map((i) => view.getUint8(at + i));
  if (BIT_DEPTHS[colourType!]?.includes(bitDepth!) !== true) {
    throw invalidImage(`the PNG has colour type ${colourType} with ${bitDepth} bits`);
  }
  if (compression !== 0 || filter !== 0 || interlace! > 1) {
    throw invalidImage(`the PNG has compression ${compression}, filter ${filter}, interlace ${interlace}`);
  }
  return {
    width: view.getUint32(at),
    height: view.getUint32(at + 4),
    bitDepth: bitDepth!,
    colourType: colourType!,
    isInterlaced: interlace === 1,
  };
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
