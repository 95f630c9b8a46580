// One 32-column block of each format that is stored in eight bits: i8[32] at out, f32 scale at +32, f32 mins of the two
// halves at +36 and +40 (only for formats with mins). src/quant/ documents each format.
import { FP4_VALUES, IQ2_GRID, IQ4_VALUES } from './tables';
import { halfToFloat } from './vector-math';


// @ts-ignore: decorator
@inline
function finish(out: usize, scale: f32, lowMin: f32, highMin: f32): void {
  store<f32>(out, scale, 32);
  store<f32>(out, lowMin, 36);
  store<f32>(out, highMin, 40);
}

/** Rows that TypeScript has decoded (../../level-rows.ts). */
export const LEVELS_TYPE: i32 = 255;

export function levelsBlock(levels: usize, scales: usize, out: usize): void {
  memory.copy(out, levels, 32);
  finish(out, load<f32>(scales), 0, 0);
}

export function q4_1Block(block: usize, out: usize): void {
  for (let j: usize = 0; j < 16; j++) {
    const pair = load<u8>(block + 4 + j);
    store<u8>(out + j, pair & 15);
    store<u8>(out + 16 + j, pair >> 4);
  }
  const min = halfToFloat(load<u16>(block, 2));
  finish(out, halfToFloat(load<u16>(block)), min, min);
}

function fiveBits(nibbles: usize, fifths: u32, offset: i32, out: usize): void {
  for (let j: usize = 0; j < 16; j++) {
    const pair = <u32>load<u8>(nibbles + j);
    store<i8>(out + j, <i8>(<i32>((pair & 15) | (((fifths >> <u32>j) & 1) << 4)) - offset));
    store<i8>(out + 16 + j, <i8>(<i32>((pair >> 4) | (((fifths >> <u32>(j + 16)) & 1) << 4)) - offset));
  }
}

export function q5_0Block(block: usize, out: usize): void {
  fiveBits(block + 6, load<u32>(block, 2), 16, out);
  finish(out, halfToFloat(load<u16>(block)), 0, 0);
}

export function q5_1Block(block: usize, out: usize): void {
  fiveBits(block + 8, load<u32>(block, 4), 0, out);
  const min = halfToFloat(load<u16>(block, 2));
  finish(out, halfToFloat(load<u16>(block)), min, min);
}

// Scales differ per 16 columns but are small integers: level (<= 3) times scale (<= 15) fits i8, so the scale is d alone.
export function q2kBlock(block: usize, j: usize, out: usize): void {
  const d = halfToFloat(load<u16>(block, 80));
  const dmin = halfToFloat(load<u16>(block, 82));
  const lowPacked = <u32>load<u8>(block + 2 * j);
  const highPacked = <u32>load<u8>(block + 2 * j + 1);
  const levels = block + 16 + (j >> 2) * 32;
  const shift = <u32>(j & 3) * 2;
  for (let l: usize = 0; l < 32; l++) {
    const scale = (l < 16 ? lowPacked : highPacked) & 15;
    store<u8>(out + l, scale * ((<u32>load<u8>(levels + l) >> shift) & 3));
  }
  finish(out, d, -dmin * <f32>(lowPacked >> 4), -dmin * <f32>(highPacked >> 4));
}

// @ts-ignore: decorator
@inline
function scaleOfQ3K(block: usize, s: u32): i32 {
  const lower = (<u32>load<u8>(block + 96 + (s & 7)) >> ((s >> 3) * 4)) & 15;
  const upper = (<u32>load<u8>(block + 104 + (s & 3)) >> ((s >> 2) * 2)) & 3;
  return <i32>(lower | (upper << 4)) - 32;
}

// Level (-4..3) times scale (-32..31) reaches +128 but never -128: negated, with a negated scale, it fits i8.
export function q3kBlock(block: usize, j: usize, out: usize): void {
  const low = scaleOfQ3K(block, <u32>j * 2);
  const high = scaleOfQ3K(block, <u32>j * 2 + 1);
  const levels = block + 32 + (j >> 2) * 32;
  const shift = <u32>(j & 3) * 2;
  for (let l: usize = 0; l < 32; l++) {
    const third = (<u32>load<u8>(block + l) >> <u32>j) & 1;
    const level = <i32>((<u32>load<u8>(levels + l) >> shift) & 3) + <i32>third * 4 - 4;
    store<i8>(out + l, <i8>-(level * (l < 16 ? low : high)));
  }
  finish(out, -halfToFloat(load<u16>(block, 108)), 0, 0);
}

export function q5kBlock(block: usize, j: usize, out: usize): void {
  const scales = block + 4;
  const scale: u32 = j < 4 ? load<u8>(scales + j) & 63 : (load<u8>(scales + j + 4) & 15) | ((load<u8>(scales + j - 4) >> 6) << 4);
  const min: u32 = j < 4 ? load<u8>(scales + j + 4) & 63 : (load<u8>(scales + j + 4) >> 4) | ((load<u8>(scales + j) >> 6) << 4);
  const pairs = block + 48 + (j >> 1) * 32;
  for (let l: usize = 0; l < 32; l++) {
    const pair = <u32>load<u8>(pairs + l);
    const fifth = (<u32>load<u8>(block + 16 + l) >> <u32>j) & 1;
    store<u8>(out + l, (j & 1 ? pair >> 4 : pair & 15) | (fifth << 4));
  }
  const offset = -halfToFloat(load<u16>(block, 2)) * <f32>min;
  finish(out, halfToFloat(load<u16>(block)) * <f32>scale, offset, offset);
}

export function iq2Block(block: usize, j: usize, out: usize): void {
  const sub = block + 2 + j * 8;
  const signsAndScale = load<u32>(sub, 4);
  for (let point: usize = 0; point < 4; point++) {
    const grid = IQ2_GRID + <usize>load<u8>(sub + point) * 8;
    let signs = (signsAndScale >> (<u32>point * 7)) & 127;
    signs |= (popcnt(signs) & 1) << 7; // the eighth sign makes the number of minuses even
    for (let k: usize = 0; k < 8; k++) {
      const value = load<i8>(grid + k);
      store<i8>(out + point * 8 + k, (signs >> <u32>k) & 1 ? -value : value);
    }
  }
  finish(out, halfToFloat(load<u16>(block)) * (<f32>0.5 + <f32>(signsAndScale >> 28)) * 0.25, 0, 0);
}

function codebook(nibbles: usize, out: usize): void {
  for (let j: usize = 0; j < 16; j++) {
    const pair = <usize>load<u8>(nibbles + j);
    store<u8>(out + j, load<u8>(IQ4_VALUES + (pair & 15)));
    store<u8>(out + 16 + j, load<u8>(IQ4_VALUES + (pair >> 4)));
  }
}

export function iq4NlBlock(block: usize, out: usize): void {
  codebook(block + 2, out);
  finish(out, halfToFloat(load<u16>(block)), 0, 0);
}

/** 2^(e - 128). */
export function mxfp4Block(block: usize, out: usize): void {
  const e = <u32>load<u8>(block);
  for (let j: usize = 0; j < 16; j++) {
    const pair = <usize>load<u8>(block + 1 + j);
    store<u8>(out + j, load<u8>(FP4_VALUES + (pair & 15)));
    store<u8>(out + 16 + j, load<u8>(FP4_VALUES + (pair >> 4)));
  }
  finish(out, reinterpret<f32>(e < 2 ? (<u32>0x00200000) << e : (e - 1) << 23), 0, 0);
}

export function iq4XsBlock(block: usize, j: usize, out: usize): void {
  const lower = (<u32>load<u8>(block + 4 + (j >> 1)) >> (<u32>(j & 1) * 4)) & 15;
  const upper = (<u32>load<u16>(block, 2) >> (<u32>j * 2)) & 3;
  codebook(block + 8 + j * 16, out);
  finish(out, halfToFloat(load<u16>(block)) * <f32>(<i32>(lower | (upper << 4)) - 32), 0, 0);
}
