// The layouts of weights, and decoding of single rows; repack.c creates them from file blocks. Every layout holds the exact
// values of its formats. G = 16 rows; lane 4 * r + i of a 64-byte chunk is column 4 * g + i of row r.
//
// Q4       per 32 columns: f16[16] scales, 4 chunks of nibbles: chunk c holds column group c low and c + 4 high; value n - 8
// Q8       per 32 columns: f16[16] scales, 8 chunks of u8; value u - 128
// Q8_MIN   per 32 columns: f32[16] scales, f32[2][16] mins of the halves, 8 chunks of u8; value (u - 128) * scale + min
// Q4K      per 256 columns: f16[16] d, f16[16] dmin, u8[8][16] scales, u8[8][16] mins, 8 x 4 chunks of nibbles
// Q6K      per 256 columns: f16[16] d, i8[16][16] scales, 8 x (4 chunks of low nibbles, 2 chunks of high bits)
// CODEBOOK per 32 columns: f32[16] scales, 4 chunks of nibbles; value table[n] - 128
// HALVES   per 32 columns: f32[2][16] scales of the halves, 4 chunks of nibbles; value table[n] - 128
#include "pack.h"
#include <string.h>

size_t block_bytes(int layout) {
  static const size_t bytes[] = {4 * GROUP_ROWS, 2 * GROUP_ROWS, 2 * GROUP_ROWS, 288, 544, 704, 2368, 3360, 320, 320, 320, 320, 320, 384, 384, 384};
  return bytes[layout];
}
int block_cols(int layout) { return layout <= LAYOUT_BF16 ? 1 : layout == LAYOUT_Q4K || layout == LAYOUT_Q6K ? 256 : 32; }
size_t group_bytes(int layout, int cols) { return (size_t)(cols / block_cols(layout)) * block_bytes(layout); }

// Codebooks, with 128 added to each value to make it unsigned.
static const uint8_t iq4_table[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t iq2_table[16] = {128 - 43, 128 - 25, 128 - 8, 128 + 8, 128 + 25, 128 + 43};

static const uint8_t fp4_table[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};
static const uint8_t iq3_table[16] = {66, 76, 84, 92, 100, 108, 116, 124, 132, 140, 148, 156, 164, 172, 180, 190};
static const uint8_t odd_table[16] = {113, 115, 117, 119, 121, 123, 125, 127, 129, 131, 133, 135, 137, 139, 141, 143};

const uint8_t *codebook_table(int layout) {
  switch (layout) {
    case LAYOUT_CODEBOOK_IQ4: return iq4_table;
    case LAYOUT_CODEBOOK_FP4: case LAYOUT_HALVES_FP4: return fp4_table;
    case LAYOUT_CODEBOOK_IQ3: return iq3_table;
    case LAYOUT_CODEBOOK_ODD: case LAYOUT_HALVES_ODD: return odd_table;
    default: return iq2_table;
  }
}

static float half_at(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return half_to_float(v); }
// Byte of a block's chunks with column c (0-31) of row r; a nibble is in its low (c < 16) or high half.
static int nibble_at(int r, int c) { return ((c & 15) >> 2) * 64 + r * 4 + (c & 3); }
static int byte_at(int r, int c) { return (c >> 2) * 64 + r * 4 + (c & 3); }
static int get_nibble(const uint8_t *chunks, int r, int c) {
  const int v = chunks[nibble_at(r, c)];
  return c < 16 ? v & 15 : v >> 4;
}
// High bits: byte 4 * r + i of chunk h holds, from the low bits up, columns 8h + i, 8h + 4 + i, 16 + 8h + i, 16 + 8h + 4 + i.
static int high_at(int r, int c) { return 256 + ((c >> 3) & 1) * 64 + r * 4 + (c & 3); }
static int high_shift(int c) { return (((c >> 2) & 1) + (c >> 4) * 2) * 2; }

static float f32_at(const uint8_t *p) { float v; memcpy(&v, p, 4); return v; }

static float value_at(int layout, const uint8_t *group, int r, int c) {
  const int i = c & 31, j = (c >> 5) & 7;
  const uint8_t *p;
  switch (layout) {
    case LAYOUT_Q4:
      p = group + (size_t)(c >> 5) * 288;
      return half_at(p + r * 2) * (float)(get_nibble(p + 32, r, i) - 8);
    case LAYOUT_Q8:
      p = group + (size_t)(c >> 5) * 544;
      return half_at(p + r * 2) * (float)(p[32 + byte_at(r, i)] - 128);
    case LAYOUT_Q8_MIN:
      p = group + (size_t)(c >> 5) * 704;
      return f32_at(p + r * 4) * (float)(p[192 + byte_at(r, i)] - 128) + f32_at(p + 64 + (i >> 4) * 64 + r * 4);
    case LAYOUT_Q4K:
      p = group + (size_t)(c >> 8) * 2368;
      return half_at(p + r * 2) * (float)p[64 + j * 16 + r] * (float)get_nibble(p + 320 + j * 256, r, i) -
             half_at(p + 32 + r * 2) * (float)p[192 + j * 16 + r];
    case LAYOUT_Q6K: {
      p = group + (size_t)(c >> 8) * 3360;
      const uint8_t *chunks = p + 288 + j * 384;
      const int level = get_nibble(chunks, r, i) | (chunks[high_at(r, i)] >> high_shift(i) & 3) << 4;
      return half_at(p + r * 2) * (float)(int8_t)p[32 + (2 * j + (i >> 4)) * 16 + r] * (float)(level - 32);
    }
    case LAYOUT_HALVES_IQ2: case LAYOUT_HALVES_FP4: case LAYOUT_HALVES_ODD:
      p = group + (size_t)(c >> 5) * 384;
      return f32_at(p + (i >> 4) * 64 + r * 4) * (float)(codebook_table(layout)[get_nibble(p + 128, r, i)] - 128);
    default:
      p = group + (size_t)(c >> 5) * 320;
      return f32_at(p + r * 4) * (float)(codebook_table(layout)[get_nibble(p + 64, r, i)] - 128);
  }
}

// args: 2 table, 3 layout, 4 cols, 5 ids, 6 out, 7 rows to read, 8 scale. A token is a row.
void rows_gather(const Context *c, const Record *op, int first, int end) {
  const int layout = arg_i(op, 3), cols = arg_i(op, 4);
  const int32_t *ids = (const int32_t *)(c->base + arg_u(op, 5));
  const float factor = arg_f(op, 8);
  for (int n = first; n < end; n++) {
    float *out = (float *)(c->base + arg_u(op, 6)) + (size_t)n * cols;
    const uint8_t *group = c->base + arg_u(op, 2) + (size_t)(ids[n] / GROUP_ROWS) * group_bytes(layout, cols);
    const int r = ids[n] % GROUP_ROWS;
    if (layout == LAYOUT_F32) memcpy(out, group + (size_t)r * cols * 4, (size_t)cols * 4);
    else if (layout == LAYOUT_F16) widen_f16((const uint16_t *)group + (size_t)r * cols, out, cols);
    else if (layout == LAYOUT_BF16)
      for (int i = 0; i < cols; i++) ((uint32_t *)out)[i] = (uint32_t)((const uint16_t *)group)[(size_t)r * cols + i] << 16;
    else
      for (int i = 0; i < cols; i++) out[i] = value_at(layout, group, r, i);
    if (factor != 1)
      for (int i = 0; i < cols; i++) out[i] *= factor;
  }
}
