import jpeg from 'jpeg-js';
import { expect, test } from 'vitest';
import { makePng, paintPng } from '../../test/support/make-png.ts';
import { readImage } from './read-image.ts';
import { prepareImage } from './prepare-image.ts';
import { resizeToSquare } from './resize.ts';

const colourAt = (x: number, y: number) => [x * 9 + y, y * 17, (x * y * 5) % 256] as const;
const painted = (width: number, height: number): number[] =>
  Array.from({ length: width * height }, (_, i) => colourAt(i % width, Math.floor(i / width))).flat();

test('reads a PNG of one pixel and of many', async () => {
  expect(await readImage(paintPng(1, 1, () => [7, 8, 9]))).toEqual({
    width: 1,
    height: 1,
    data: Uint8Array.of(7, 8, 9),
  });
  const image = await readImage(paintPng(13, 7, colourAt));
  expect([...image.data]).toEqual(painted(13, 7));
});

test('undoes every filter of a PNG', async () => {
  const [width, height] = [5, 5];
  const pixels = painted(width, height);
  const at = (x: number, y: number, colour: number): number =>
    x < 0 || y < 0 ? 0 : pixels[(y * width + x) * 3 + colour]!;
  const paeth = (a: number, b: number, c: number): number => {
    const p = a + b - c;
    const [pa, pb, pc] = [Math.abs(p - a), Math.abs(p - b), Math.abs(p - c)];
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
  };
  const raw: number[] = [];
  for (let y = 0; y < height; y++) {
    raw.push(y);
    for (let x = 0; x < width; x++) {
      for (let colour = 0; colour < 3; colour++) {
        const [a, b, c] = [at(x - 1, y, colour), at(x, y - 1, colour), at(x - 1, y - 1, colour)];
        const guess = [0, a, b, Math.floor((a + b) / 2), paeth(a, b, c)][y]!;
        raw.push((at(x, y, colour) - guess) & 255);
      }
    }
  }
  const image = await readImage(makePng({ width, height, raw: Uint8Array.from(raw) }));
  expect([...image.data]).toEqual(pixels);
});

test.each<[string, Parameters<typeof makePng>[0], number[]]>([
  [
    'grey of 1 bit',
    { width: 3, height: 1, bitDepth: 1, colourType: 0, raw: Uint8Array.of(0, 0b10100000) },
    [255, 0, 255],
  ],
  ['grey of 4 bits', { width: 2, height: 1, bitDepth: 4, colourType: 0, raw: Uint8Array.of(0, 0x3f) }, [51, 255]],
  ['grey with alpha', { width: 2, height: 1, colourType: 4, raw: Uint8Array.of(0, 10, 0, 20, 9) }, [10, 20]],
  ['grey of 16 bits', { width: 1, height: 1, bitDepth: 16, colourType: 0, raw: Uint8Array.of(0, 200, 99) }, [200]],
])('reads %s', async (_what, options, greys) => {
  expect([...(await readImage(makePng(options))).data]).toEqual(greys.flatMap((grey) => [grey, grey, grey]));
});

test('reads a palette, alpha and interlacing', async () => {
  const palette = ['PLTE', Uint8Array.of(1, 2, 3, 4, 5, 6)] as const;
  const indexed = makePng({
    width: 2,
    height: 1,
    bitDepth: 2,
    colourType: 3,
    raw: Uint8Array.of(0, 0x40),
    chunks: [palette],
  });
  expect([...(await readImage(indexed)).data]).toEqual([4, 5, 6, 1, 2, 3]);
  const alpha = makePng({ width: 1, height: 1, colourType: 6, raw: Uint8Array.of(0, 1, 2, 3, 0) });
  expect([...(await readImage(alpha)).data]).toEqual([1, 2, 3]);
  // 2 × 2 pixels: passes 1, 6 and 7.
  const raw = Uint8Array.of(0, 10, 0, 20, 0, 30, 40);
  const interlaced = makePng({ width: 2, height: 2, colourType: 0, interlace: 1, raw });
  expect([...(await readImage(interlaced)).data].filter((_, i) => i % 3 === 0)).toEqual([10, 20, 30, 40]);
});

test('reads a JPEG', async () => {
  const data = new Uint8Array(32 * 24 * 4).map((_, i) => [200, 40, 90, 255][i % 4]!);
  const { width, height, data: pixels } = await readImage(jpeg.encode({ width: 32, height: 24, data }, 95).data);
  expect([width, height]).toEqual([32, 24]);
  for (const [i, value] of pixels.entries()) expect(Math.abs(value - [200, 40, 90][i % 3]!)).toBeLessThan(4);
});

const png = paintPng(40, 30, colourAt);
const photo = jpeg.encode(
  { width: 64, height: 64, data: new Uint8Array(64 * 64 * 4).map((_, i) => (i * 7919) % 256) },
  90,
).data;
const sized = (width: number, height: number): Uint8Array => makePng({ width, height, raw: new Uint8Array(10) });
const text = (value: string): Uint8Array => new TextEncoder().encode(value.padEnd(64));

test.each<[string, Uint8Array, string, RegExp]>([
  ['no bytes', new Uint8Array(0), 'invalid_option', /no bytes/],
  ['too many bytes', new Uint8Array(20 * 2 ** 20 + 1), 'invalid_option', /20971521 bytes.*20971520/],
  ['text', text('hello'), 'invalid_option', /neither PNG nor JPEG/],
  ['a GIF', text('GIF89a'), 'unsupported', /GIF; send PNG or JPEG/],
  ['a WebP', text('RIFF1234WEBPVP8 '), 'unsupported', /WebP/],
  ['a HEIC', text('1234ftypheic'), 'unsupported', /HEIC/],
  [
    'an animated PNG',
    makePng({ width: 1, height: 1, raw: new Uint8Array(4), chunks: [['acTL', new Uint8Array(8)]] }),
    'unsupported',
    /animated/,
  ],
  ['a PNG cut in its header', png.subarray(0, 20), 'invalid_option', /ends before its header/],
  ['a PNG cut in its pixels', png.subarray(0, png.length - 40), 'invalid_option', /truncated|ends at byte/],
  ['a huge PNG', sized(30_000, 30_000), 'invalid_option', /30000 × 30000 pixels.*33554432/],
  ['a PNG without height', sized(5, 0), 'invalid_option', /5 × 0/],
  ['a long PNG', sized(40_000, 1), 'invalid_option', /40000 × 1/],
  ['a bomb', makePng({ width: 1, height: 1, raw: new Uint8Array(2 ** 24) }), 'invalid_option', /more than the 4 bytes/],
  ['too few pixels', makePng({ width: 9, height: 9, raw: new Uint8Array(10) }), 'invalid_option', /10 of 252 bytes/],
  ['an unknown filter', makePng({ width: 1, height: 1, raw: Uint8Array.of(9, 0, 0, 0) }), 'invalid_option', /filter 9/],
  [
    'an unknown depth',
    makePng({ width: 1, height: 1, bitDepth: 3, raw: new Uint8Array(4) }),
    'invalid_option',
    /3 bits/,
  ],
  [
    'a colour outside the palette',
    makePng({ width: 1, height: 1, colourType: 3, raw: Uint8Array.of(0, 5), chunks: [['PLTE', new Uint8Array(6)]] }),
    'invalid_option',
    /colour 5 of 2/,
  ],
  ['a JPEG cut in its header', photo.subarray(0, 30), 'invalid_option', /ends before its size|no marker/],
  ['a JPEG cut in its pixels', photo.subarray(0, photo.length >> 1), 'invalid_option', /cannot be decoded/],
])('rejects %s', async (_what, bytes, code, message) => {
  await expect(readImage(bytes)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

test('rejects random changes with typed errors or reads them', async () => {
  for (const whole of [png, photo]) {
    for (let i = 0; i < 150; i++) {
      const bytes = Uint8Array.from(whole);
      for (let k = 0; k < 3; k++) bytes[(i * 131 + k * 977) % bytes.length]! ^= 1 << ((i + k) % 8);
      await readImage(bytes).catch((error: unknown) => expect(error).toMatchObject({ name: 'RuvLLMError' }));
    }
  }
});

test('resizes with the Lanczos filter and keeps an image of the right size', () => {
  const image = { width: 24, height: 24, data: Uint8Array.from(painted(24, 24)) };
  expect(resizeToSquare(image, 24)).toEqual(image.data);
  const constant = { width: 5, height: 9, data: new Uint8Array(5 * 9 * 3).fill(77) };
  expect(new Set(resizeToSquare(constant, 24))).toEqual(new Set([77]));
  // Shrinking by two, in one dimension: the weights of a sinc windowed by a sinc, over 12 pixels.
  const width = 48;
  const ramp = Array.from({ length: width }, (_, x) => (x * 37) % 256);
  const row = { width, height: 1, data: Uint8Array.from(ramp.flatMap((value) => [value, value, value])) };
  const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
  const resized = resizeToSquare(row, 24);
  for (let out = 0; out < 24; out++) {
    let [sum, total] = [0, 0];
    for (let x = 0; x < width; x++) {
      const distance = (x + 0.5 - (out + 0.5) * 2) / 2;
      if (Math.abs(distance) >= 3) continue;
      const weight = sinc(distance) * sinc(distance / 3);
      sum += weight * ramp[x]!;
      total += weight;
    }
    const expected = Math.min(255, Math.max(0, sum / total));
    expect(Math.abs(resized[out * 3]! - expected), `pixel ${out}`).toBeLessThan(0.5001);
  }
});

test('normalizes each colour with its own mean and deviation', async () => {
  const shape = { imageSize: 2, mean: [0.5, 0.25, 0], std: [0.5, 0.25, 2] } as const;
  const pixels = await prepareImage(
    paintPng(2, 2, (x, y) => [x * 255, y * 255, 51]),
    shape,
  );
  const expected = [-1, 1, -1, 1, -1, -1, 3, 3, 0.1, 0.1, 0.1, 0.1];
  expect(pixels).toHaveLength(12);
  for (const [i, value] of pixels.entries()) expect(value).toBeCloseTo(expected[i]!, 6);
});
