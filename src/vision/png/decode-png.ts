import { invalidImage } from '../image-error.ts';
import type { RgbImage } from '../rgb-image.ts';
import { inflate } from './inflate.ts';
import { type PngChunks, type PngHeader, readPngChunks, SAMPLES } from './png-chunks.ts';
import { unfilter } from './unfilter.ts';

/** A part of the pixels: every `stepX`-th of every `stepY`-th row. */
interface Pass {
  readonly x: number;
  readonly y: number;
  readonly stepX: number;
  readonly stepY: number;
}

const WHOLE: readonly Pass[] = [{ x: 0, y: 0, stepX: 1, stepY: 1 }];
const ADAM7: readonly Pass[] = [
  { x: 0, y: 0, stepX: 8, stepY: 8 },
  { x: 4, y: 0, stepX: 8, stepY: 8 },
  { x: 0, y: 4, stepX: 4, stepY: 8 },
  { x: 2, y: 0, stepX: 4, stepY: 4 },
  { x: 0, y: 2, stepX: 2, stepY: 4 },
  { x: 1, y: 0, stepX: 2, stepY: 2 },
  { x: 0, y: 1, stepX: 1, stepY: 2 },
];

/** Decodes a PNG of any colour type, depth and interlacing to 8 bits per colour. */
export async function decodePng(bytes: Uint8Array): Promise<RgbImage> {
  const chunks = readPngChunks(bytes);
  const { width, height, bitDepth, colourType, isInterlaced } = chunks.header;
  const bitsPerPixel = bitDepth * SAMPLES[colourType]!;
  const passes = (isInterlaced ? ADAM7 : WHOLE)
    .map((pass) => ({
      pass,
      numCols: Math.ceil((width - pass.x) / pass.stepX),
      numRows: Math.ceil((height - pass.y) / pass.stepY),
    }))
    .filter(({ numCols, numRows }) => numCols > 0 && numRows > 0);
  const rowBytes = (numCols: number): number => Math.ceil((numCols * bitsPerPixel) / 8);
  const sizeBytes = passes.reduce((sum, { numCols, numRows }) => sum + numRows * (1 + rowBytes(numCols)), 0);
  const raw = await inflate(chunks.data, sizeBytes);
  const data = new Uint8Array(width * height * 3);
  let at = 0;
  for (const { pass, numCols, numRows } of passes) {
    const length = rowBytes(numCols);
    const rows = unfilter(raw.subarray(at, at + numRows * (1 + length)), length, Math.max(1, bitsPerPixel >> 3));
    for (let row = 0; row < numRows; row++) {
      const line = rows.subarray(row * length, (row + 1) * length);
      const first = ((pass.y + row * pass.stepY) * width + pass.x) * 3;
      writeRow(line, chunks, numCols, data, first, pass.stepX * 3);
    }
    at += numRows * (1 + length);
  }
  return { width, height, data };
}

/** Writes the colours of a row's pixels; 16-bit samples lose their lower byte. */
function writeRow(
  line: Uint8Array,
  { header, palette }: PngChunks,
  numCols: number,
  out: Uint8Array,
  first: number,
  step: number,
): void {
  const samples = SAMPLES[header.colourType]!;
  for (let col = 0, at = first; col < numCols; col++, at += step) {
    if (header.colourType === 3) {
      const index = sampleAt(line, header, col) * 3;
      if (index + 2 >= palette!.length)
        throw invalidImage(`the PNG uses colour ${index / 3} of ${palette!.length / 3}`);
      out[at] = palette![index]!;
      out[at + 1] = palette![index + 1]!;
      out[at + 2] = palette![index + 2]!;
      continue;
    }
    for (let colour = 0; colour < 3; colour++) {
      out[at + colour] = scaleTo8(sampleAt(line, header, col * samples + (samples >= 3 ? colour : 0)), header);
    }
  }
}

function sampleAt(line: Uint8Array, { bitDepth }: PngHeader, index: number): number {
  if (bitDepth === 8) return line[index]!;
  if (bitDepth === 16) return line[index * 2]!;
  const bit = index * bitDepth;
  return (line[bit >> 3]! >> (8 - bitDepth - (bit & 7))) & ((1 << bitDepth) - 1);
}

const scaleTo8 = (value: number, { bitDepth }: PngHeader): number =>
  bitDepth >= 8 ? value : (value * 255) / ((1 << bitDepth) - 1);
