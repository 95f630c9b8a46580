import { crc32, deflateSync } from 'node:zlib';

export interface PngOptions {
  readonly width: number;
  readonly height: number;
  readonly bitDepth?: number;
  readonly colourType?: number;
  readonly interlace?: number;
  /** Rows with their filter bytes, before compression. */
  readonly raw: Uint8Array;
  /** Chunks between the header and the pixels. */
  readonly chunks?: readonly (readonly [type: string, body: Uint8Array])[];
}

/** A PNG file from its rows. */
export function makePng(options: PngOptions): Uint8Array<ArrayBuffer> {
  const { width, height, bitDepth = 8, colourType = 2, interlace = 0, raw, chunks = [] } = options;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bitDepth, colourType, 0, 0, interlace], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const parts = [['IHDR', header], ...chunks, ['IDAT', deflateSync(raw)], ['IEND', Buffer.alloc(0)]] as const;
  return new Uint8Array(Buffer.concat([signature, ...parts.map(([type, body]) => chunk(type, body))]));
}

/** An RGB image whose colours are a function of place. */
export function paintPng(
  width: number,
  height: number,
  colourAt: (x: number, y: number) => readonly [number, number, number],
): Uint8Array<ArrayBuffer> {
  const raw = new Uint8Array(height * (1 + width * 3));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) raw.set(colourAt(x, y), y * (1 + width * 3) + 1 + x * 3);
  }
  return makePng({ width, height, raw });
}

function chunk(type: string, body: Uint8Array): Buffer {
  const out = Buffer.alloc(12 + body.length);
  out.writeUInt32BE(body.length, 0);
  out.write(type, 4, 'latin1');
  out.set(body, 8);
  out.writeUInt32BE(crc32(out.subarray(4, 8 + body.length)), 8 + body.length);
  return out;
}
