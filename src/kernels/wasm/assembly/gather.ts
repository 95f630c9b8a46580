import { address, takeChunk } from './control';
import { halfToFloat } from './vector-math';
import { widenBfloat, widenHalf } from './dot-float';
import { groupBytes, hasHalfScales, LAYOUT_BF16, LAYOUT_F16, LAYOUT_F32, LAYOUT_Q4, LAYOUT_Q4K, LAYOUT_Q6K, LAYOUT_Q8, LAYOUT_Q8_MIN, valuesOf } from './layouts';

/** args: 2 table, 3 layout, 4 cols, 5 ids, 6 out, 7 rows to read, 8 scale (f32). A chunk is a row. */
export function gatherOp(op: usize): void {
  const table = address(op, 8);
  const layout = load<i32>(op, 12);
  const cols = load<i32>(op, 16);
  const ids = address(op, 20);
  const out = address(op, 24);
  const numRows = load<i32>(op, 28);
  const factor = load<f32>(op, 32);
  for (let i = takeChunk(op); i < numRows; i = takeChunk(op)) {
    const id = load<i32>(ids + (<usize>i << 2));
    const target = out + <usize>i * (<usize>cols << 2);
    const group = table + <usize>(id >> 2) * groupBytes(layout, cols);
    const r = <usize>(id & 3);
    if (layout == LAYOUT_F32) memory.copy(target, group + r * (<usize>cols << 2), <usize>cols << 2);
    else if (layout == LAYOUT_F16) widenHalf(group + r * (<usize>cols << 1), target, cols);
    else if (layout == LAYOUT_BF16) widenBfloat(group + r * (<usize>cols << 1), target, cols);
    else if (layout == LAYOUT_Q4) unpackQ4(group, r, cols, target);
    else if (layout == LAYOUT_Q4K) unpackQ4K(group, r, cols, target);
    else if (layout == LAYOUT_Q8 || layout == LAYOUT_Q8_MIN) unpackQ8(group, r, cols, target, layout == LAYOUT_Q8_MIN);
    else if (layout == LAYOUT_Q6K) unpackQ6K(group, r, cols, target);
    else if (hasHalfScales(layout)) unpackHalves(valuesOf(layout), group, r, cols, target);
    else unpackCodebook(valuesOf(layout), group, r, cols, target);
    if (factor != 1) {
      for (let c = 0; c < cols; c++) store<f32>(target + (<usize>c << 2), load<f32>(target + (<usize>c << 2)) * factor);
    }
  }
}

/** Column c (0-31) of row r in a nibble block. */
// @ts-ignore: decorator
@inline
function nibbleAt(quants: usize, r: usize, c: usize): u32 {
  const byte = <u32>load<u8>(quants + ((c & 15) >> 2) * 16 + r * 4 + (c & 3));
  return c < 16 ? byte & 15 : byte >> 4;
}

function unpackQ4(group: usize, r: usize, cols: i32, out: usize): void {
  for (let c: usize = 0; c < <usize>cols; c++) {
    const block = group + (c >> 5) * 72;
    const scale = halfToFloat(load<u16>(block + r * 2));
    store<f32>(out + c * 4, scale * <f32>(<i32>(nibbleAt(block + 8, r, c & 31) ^ (SIGNED_DOT ? 8 : 0)) - 8));
  }
}

function unpackQ4K(group: usize, r: usize, cols: i32, out: usize): void {
  for (let c: usize = 0; c < <usize>cols; c++) {
    const block = group + (c >> 8) * 608;
    const j = (c >> 5) & 7;
    const at = (j >> 1) * 8 + r * 2 + (j & 1);
    const scale = load<f32>(block + r * 4) * <f32>load<u8>(block + 32 + (SIGNED_DOT ? j * 4 + r : at));
    const min = load<f32>(block + 16 + r * 4) * <f32>load<u8>(block + 64 + at);
    store<f32>(out + c * 4, scale * <f32>nibbleAt(block + 96 + j * 64, r, c & 31) - min);
  }
}

function unpackQ6K(group: usize, r: usize, cols: i32, out: usize): void {
  for (let c: usize = 0; c < <usize>cols; c++) {
    const block = group + (c >> 8) * 848;
    const j = (c >> 5) & 7;
    const i = c & 31;
    const quants = block + 80 + j * 96;
    const highs = <u32>load<u8>(quants + 64 + ((i >> 3) & 1) * 16 + r * 4 + (i & 3));
    const place = <u32>(((i >> 2) & 1) + (i >> 4) * 2);
    const value = nibbleAt(quants, r, i) | (((highs >> (place * 2)) & 3) << 4);
    const scale = load<f32>(block + r * 4) * <f32>load<i8>(block + 16 + j * 8 + (SIGNED_DOT ? (i >> 4) * 4 + r : r * 2 + (i >> 4)));
    store<f32>(out + c * 4, scale * <f32>(<i32>(value ^ (SIGNED_DOT ? 32 : 0)) - 32));
  }
}

function unpackCodebook(table: usize, group: usize, r: usize, cols: i32, out: usize): void {
  for (let c: usize = 0; c < <usize>cols; c++) {
    const block = group + (c >> 5) * 88;
    store<f32>(out + c * 4, load<f32>(block + r * 4) * <f32>load<i8>(table + <usize>nibbleAt(block + 24, r, c & 31)));
  }
}

function unpackHalves(table: usize, group: usize, r: usize, cols: i32, out: usize): void {
  for (let c: usize = 0; c < <usize>cols; c++) {
    const block = group + (c >> 5) * 112;
    const scale = load<f32>(block + ((c >> 4) & 1) * 16 + r * 4);
    store<f32>(out + c * 4, scale * <f32>load<i8>(table + <usize>nibbleAt(block + 48, r, c & 31)));
  }
}

function unpackQ8(group: usize, r: usize, cols: i32, out: usize, hasMins: bool): void {
  const blockBytes: usize = hasMins ? 176 : 136;
  const quants: usize = hasMins ? 48 : 8;
  for (let c: usize = 0; c < <usize>cols; c++) {
    const block = group + (c >> 5) * blockBytes;
    const i = c & 31;
    const scale: f32 = hasMins ? load<f32>(block + r * 4) : halfToFloat(load<u16>(block + r * 2));
    const at = SIGNED_DOT ? (i >> 2) * 16 + r * 4 + (i & 3) : (i >> 1) * 8 + r * 2 + (i & 1);
    let value = scale * <f32>load<i8>(block + quants + at);
    if (hasMins) value += load<f32>(block + 16 + (i >> 4) * 16 + r * 4);
    store<f32>(out + c * 4, value);
  }
}
