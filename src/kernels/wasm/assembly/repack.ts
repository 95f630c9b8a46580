// Converts file blocks to the layouts of layouts.ts, four rows at a time. Every layout holds the exact values of its
// formats: scales are products of a half (11 bits) and a small integer, which an f32 holds without rounding.
import { address, takeChunk } from './control';
import { floatToHalf, halfToFloat } from './vector-math';
import { groupBytes, hasHalfScales, indexOf, LAYOUT_BF16, LAYOUT_IQ4, LAYOUT_Q4, LAYOUT_Q4K, LAYOUT_Q6K, LAYOUT_Q8_MIN } from './layouts';
import { HALVES_BLOCK_BYTES } from './dot-halves';
import { iq2Block, iq4NlBlock, iq4XsBlock, levelsBlock, LEVELS_TYPE, mxfp4Block, q2kBlock, q3kBlock, q4_1Block, q5_0Block, q5_1Block, q5kBlock } from './decode-blocks';

/**
 * args: 2 source rows, 3 file type, 4 rows, 5 cols, 6 bytes per source row, 7 target, 8 layout, 9 address of an i32 that
 * becomes 1 if a scale cannot be stored. A chunk is 16 groups.
 */
export function repackOp(op: usize, scratch: usize): void {
  const source = address(op, 8);
  const type = load<i32>(op, 12);
  const rows = load<i32>(op, 16);
  const cols = load<i32>(op, 20);
  const rowBytes = address(op, 24);
  const target = address(op, 28);
  const layout = load<i32>(op, 32);
  const refused = address(op, 36);
  const numGroups = (rows + 3) >> 2;
  const stride = groupBytes(layout, cols);
  for (let first = takeChunk(op) * 16; first < numGroups; first = takeChunk(op) * 16) {
    const end = min(numGroups, first + 16);
    for (let g = first; g < end; g++) {
      const src = source + <usize>(g * 4) * rowBytes;
      const dst = target + <usize>g * stride;
      const numRows = min(4, rows - g * 4);
      if (layout <= LAYOUT_BF16) memory.copy(dst, src, <usize>numRows * rowBytes);
      else {
        if (numRows < 4) memory.fill(dst, 0, stride); // missing rows give zero and are never stored
        if (layout == LAYOUT_Q4) packQ4(src, rowBytes, numRows, cols, dst, refused);
        else if (layout == LAYOUT_Q4K) packQ4K(src, rowBytes, numRows, cols, dst);
        else if (layout == LAYOUT_Q6K) packQ6K(src, rowBytes, numRows, cols, dst);
        else if (hasHalfScales(layout)) packHalves(indexOf(layout), src, rowBytes, numRows, cols, dst);
        else if (layout >= LAYOUT_IQ4) packCodebook(indexOf(layout), type, src, rowBytes, numRows, cols, dst, scratch, refused);
        else packQ8(type, src, rowBytes, numRows, cols, dst, layout == LAYOUT_Q8_MIN, scratch, refused);
      }
    }
  }
}

/** Stores a scale as a half. The kernels read finite numbers only (loadHalves4), so others are rejected here. */
// @ts-ignore: decorator
@inline
function storeScale(out: usize, half: u32, refused: usize): void {
  if ((half & 0x7c00) == 0x7c00) atomic.store<i32>(refused, 1);
  store<u16>(out, <u16>half);
}

/** Sums times a larger scale overflow. */
const MAX_SCALE: f32 = 1.2676506e30; // 2^100

/** Converts nibbles from value plus 8 to two's complement for signed-q4. */
const SIGN_BITS: u32 = SIGNED_DOT ? 0x88888888 : 0;

// Q4_0 blocks pair column i with column 16 + i in one byte, like our chunks: four bytes move at a time.
function packQ4(src: usize, rowBytes: usize, numRows: i32, cols: i32, dst: usize, refused: usize): void {
  const numBlocks = cols / 32;
  for (let b = 0; b < numBlocks; b++) {
    const out = dst + <usize>b * 72;
    for (let r: usize = 0; r < <usize>numRows; r++) {
      const block = src + r * rowBytes + <usize>b * 18;
      storeScale(out + r * 2, load<u16>(block), refused);
      for (let c: usize = 0; c < 4; c++) store<u32>(out + 8 + c * 16 + r * 4, load<u32>(block + 2 + c * 4) ^ SIGN_BITS);
    }
  }
}

// @ts-ignore: decorator
@inline
function scaleOfQ4K(scales: usize, j: usize): u32 {
  return j < 4 ? load<u8>(scales + j) & 63 : (load<u8>(scales + j + 4) & 15) | ((load<u8>(scales + j - 4) >> 6) << 4);
}
// @ts-ignore: decorator
@inline
function minOfQ4K(scales: usize, j: usize): u32 {
  return j < 4 ? load<u8>(scales + j + 4) & 63 : (load<u8>(scales + j + 4) >> 4) | ((load<u8>(scales + j) >> 6) << 4);
}

/** Packs four columns of a row into the low or high nibbles of four bytes. */
// @ts-ignore: decorator
@inline
function nibbles4(bytes: u32, high: bool): u32 { return (high ? bytes >> 4 : bytes) & 0x0f0f0f0f; }

function packQ4K(src: usize, rowBytes: usize, numRows: i32, cols: i32, dst: usize): void {
  for (let b = 0, n = cols / 256; b < n; b++) {
    const out = dst + <usize>b * 608;
    for (let r: usize = 0; r < <usize>numRows; r++) {
      const block = src + r * rowBytes + <usize>b * 144;
      store<f32>(out + r * 4, halfToFloat(load<u16>(block)));
      store<f32>(out + 16 + r * 4, halfToFloat(load<u16>(block, 2)));
      for (let j: usize = 0; j < 8; j++) {
        store<u8>(out + 32 + (SIGNED_DOT ? j * 4 + r : (j >> 1) * 8 + r * 2 + (j & 1)), scaleOfQ4K(block + 4, j));
        store<u8>(out + 64 + (j >> 1) * 8 + r * 2 + (j & 1), minOfQ4K(block + 4, j));
        // In the file, sub-blocks 2k and 2k+1 are the low and high nibbles of the same 32 bytes.
        const bytes = block + 16 + (j >> 1) * 32;
        for (let c: usize = 0; c < 4; c++) {
          const low = nibbles4(load<u32>(bytes + c * 4), (j & 1) != 0);
          const high = nibbles4(load<u32>(bytes + 16 + c * 4), (j & 1) != 0);
          store<u32>(out + 96 + j * 64 + c * 16 + r * 4, low | (high << 4));
        }
      }
    }
  }
}

/** Four 6-bit values of sub-block-of-32 `j`, columns c4 … c4+3; two's complement for signed-q6k. File: halves of 128; ql 64 bytes, qh 32 bytes each. */
// @ts-ignore: decorator
@inline
function sixBits4(block: usize, j: usize, c4: usize): u32 {
  const half = j >> 2;
  const quarter = j & 3;
  const low = load<u32>(block + half * 64 + (quarter & 1) * 32 + c4);
  const high = load<u32>(block + 128 + half * 32 + c4);
  return (nibbles4(low, quarter >= 2) | (((high >> (<u32>quarter * 2)) & 0x03030303) << 4)) ^ (SIGNED_DOT ? 0x20202020 : 0);
}

function packQ6K(src: usize, rowBytes: usize, numRows: i32, cols: i32, dst: usize): void {
  for (let b = 0, n = cols / 256; b < n; b++) {
    const out = dst + <usize>b * 848;
    for (let r: usize = 0; r < <usize>numRows; r++) {
      const block = src + r * rowBytes + <usize>b * 210;
      store<f32>(out + r * 4, halfToFloat(load<u16>(block, 208)));
      for (let s: usize = 0; s < 16; s++) store<u8>(out + 16 + (SIGNED_DOT ? s * 4 + r : (s >> 1) * 8 + r * 2 + (s & 1)), load<u8>(block + 192 + s));
      for (let j: usize = 0; j < 8; j++) {
        const q = out + 80 + j * 96;
        for (let c: usize = 0; c < 4; c++) {
          const low = sixBits4(block, j, c * 4);
          const high = sixBits4(block, j, 16 + c * 4);
          store<u32>(q + c * 16 + r * 4, (low & 0x0f0f0f0f) | ((high & 0x0f0f0f0f) << 4));
        }
        for (let h: usize = 0; h < 2; h++) {
          const p0 = (sixBits4(block, j, 8 * h) >> 4) & 0x03030303;
          const p1 = (sixBits4(block, j, 8 * h + 4) >> 4) & 0x03030303;
          const p2 = (sixBits4(block, j, 16 + 8 * h) >> 4) & 0x03030303;
          const p3 = (sixBits4(block, j, 16 + 8 * h + 4) >> 4) & 0x03030303;
          store<u32>(q + 64 + h * 16 + r * 4, p0 | (p1 << 2) | (p2 << 4) | (p3 << 6));
        }
      }
    }
  }
}

/** Decodes block `b` of 32 columns: i8[32] at `out`, f32 scale at +32, f32 mins at +36 and +40. Types by GGUF number. */
function decode32(type: i32, row: usize, cols: i32, b: usize, out: usize): void {
  if (type == 8) {
    const block = row + b * 34;
    store<f32>(out, halfToFloat(load<u16>(block)), 32);
    memory.copy(out, block + 2, 32);
  } else if (type == 3) q4_1Block(row + b * 20, out);
  else if (type == 6) q5_0Block(row + b * 22, out);
  else if (type == 7) q5_1Block(row + b * 24, out);
  else if (type == 10) q2kBlock(row + (b >> 3) * 84, b & 7, out);
  else if (type == 11) q3kBlock(row + (b >> 3) * 110, b & 7, out);
  else if (type == 13) q5kBlock(row + (b >> 3) * 176, b & 7, out);
  else if (type == 16) iq2Block(row + (b >> 3) * 66, b & 7, out);
  else if (type == 20) iq4NlBlock(row + b * 18, out);
  else if (type == 23) iq4XsBlock(row + (b >> 3) * 136, b & 7, out);
  else if (type == 39) mxfp4Block(row + b * 17, out);
  else if (type == LEVELS_TYPE) levelsBlock(row + b * 32, row + <usize>cols + b * 8, out);
  else unreachable();
}

function packCodebook(index: usize, type: i32, src: usize, rowBytes: usize, numRows: i32, cols: i32, dst: usize, scratch: usize, refused: usize): void {
  for (let b = 0, n = cols / 32; b < n; b++) {
    const out = dst + <usize>b * 88;
    for (let r: usize = 0; r < <usize>numRows; r++) {
      decode32(type, src + r * rowBytes, cols, <usize>b, scratch);
      const scale = load<f32>(scratch, 32);
      if (type == 39 && scale >= MAX_SCALE) atomic.store<i32>(refused, 1);
      store<f32>(out + r * 4, scale);
      let sum = 0;
      for (let c: usize = 0; c < 16; c++) {
        const low = load<i8>(scratch + c);
        const high = load<i8>(scratch + 16 + c);
        sum += <i32>low + <i32>high;
        const pair = load<u8>(index + <usize>(<u8>low)) | (load<u8>(index + <usize>(<u8>high)) << 4);
        store<u8>(out + 24 + (c >> 2) * 16 + r * 4 + (c & 3), pair);
      }
      store<i16>(out + 16 + r * 2, <i16>sum);
    }
  }
}

/** Rows of levels (../../level-rows.ts) only. */
function packHalves(index: usize, src: usize, rowBytes: usize, numRows: i32, cols: i32, dst: usize): void {
  for (let b = 0, n = cols / 32; b < n; b++) {
    const out = dst + <usize>b * HALVES_BLOCK_BYTES;
    for (let r: usize = 0; r < <usize>numRows; r++) {
      const levels = src + r * rowBytes + <usize>b * 32;
      const scales = src + r * rowBytes + <usize>cols + <usize>b * 8;
      let lowSum = 0;
      let highSum = 0;
      for (let c: usize = 0; c < 16; c++) {
        const low = load<i8>(levels + c);
        const high = load<i8>(levels + 16 + c);
        lowSum += <i32>low;
        highSum += <i32>high;
        const pair = load<u8>(index + <usize>(<u8>low)) | (load<u8>(index + <usize>(<u8>high)) << 4);
        store<u8>(out + 48 + (c >> 2) * 16 + r * 4 + (c & 3), pair);
      }
      store<f32>(out + r * 4, load<f32>(scales));
      store<f32>(out + 16 + r * 4, load<f32>(scales, 4));
      store<i16>(out + 32 + r * 2, <i16>lowSum);
      store<i16>(out + 40 + r * 2, <i16>highSum);
    }
  }
}

function packQ8(type: i32, src: usize, rowBytes: usize, numRows: i32, cols: i32, dst: usize, hasMins: bool, scratch: usize, refused: usize): void {
  const blockBytes: usize = hasMins ? 176 : 136;
  const quants: usize = hasMins ? 48 : 8;
  for (let b = 0, n = cols / 32; b < n; b++) {
    const out = dst + <usize>b * blockBytes;
    for (let r: usize = 0; r < <usize>numRows; r++) {
      decode32(type, src + r * rowBytes, cols, <usize>b, scratch);
      if (!hasMins) storeScale(out + r * 2, floatToHalf(load<f32>(scratch, 32)), refused); // exact: it was a half in the file
      else {
        store<f32>(out + r * 4, load<f32>(scratch, 32));
        store<f32>(out + 16 + r * 4, load<f32>(scratch, 36));
        store<f32>(out + 32 + r * 4, load<f32>(scratch, 40));
      }
      if (SIGNED_DOT) for (let k: usize = 0; k < 8; k++) store<u32>(out + quants + k * 16 + r * 4, load<u32>(scratch + k * 4));
      else for (let p: usize = 0; p < 16; p++) store<u16>(out + quants + p * 8 + r * 2, load<u16>(scratch + p * 2));
    }
  }
}
