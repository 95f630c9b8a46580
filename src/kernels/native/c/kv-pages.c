// Packed KV pages: rounding of whole pages, and widening for attention. ../../kv-region.ts describes the layout,
// ../../contract.ts (PackPagesOp) the rounding: all packs write the same bytes.
#include "pack.h"
#include "vector-math.h"
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { MAX_HEAD_DIM = 576, HALF_NAN = 0x7e00 };

static size_t head_bytes(int kind, int head_dim) {
  const size_t n = (size_t)head_dim;
  return kind == PAGES_Q8 ? 2 * PAGE_TOKENS * n + 2 * (n + PAGE_TOKENS) : PAGE_TOKENS * n + 4 * (n + PAGE_TOKENS);
}

// Compilers make the plain loops several times slower than these.
static inline void widen_bytes(const int8_t *q, int n, float scale, float *out) {
  int i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(q + i)))), _mm512_set1_ps(scale)));
#elif defined(__AVX2__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(q + i)))), _mm256_set1_ps(scale)));
#endif
  for (; i < n; i++) out[i] = (float)q[i] * scale;
}

static inline void widen_nibbles(const uint8_t *q, int half, float scale, float min, float *out) {
  int i = 0;
#if defined(__AVX2__) && defined(__FMA__)
  const __m256 factor = _mm256_set1_ps(scale), base = _mm256_set1_ps(min);
  for (; i + 8 <= half; i += 8) {
    const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(q + i)));
    _mm256_storeu_ps(out + i, _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_and_si256(wide, _mm256_set1_epi32(15))), factor, base));
    _mm256_storeu_ps(out + half + i, _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(wide, 4)), factor, base));
  }
#endif
  for (; i < half; i++) {
    out[i] = (float)(q[i] & 15) * scale + min;
    out[half + i] = (float)(q[i] >> 4) * scale + min;
  }
}

// Rows of `n` numbers, all scales first; returns their end.
static const uint8_t *widen_q8(const uint8_t *p, int rows, int n, float *out) {
  float scales[MAX_HEAD_DIM];
  widen_f16((const uint16_t *)p, scales, rows);
  const int8_t *q = (const int8_t *)p + 2 * rows;
  for (int r = 0; r < rows; r++, q += n, out += n) widen_bytes(q, n, scales[r], out);
  return (const uint8_t *)q;
}

static const uint8_t *widen_q4(const uint8_t *p, int rows, int n, float *out) {
  float scales[MAX_HEAD_DIM], mins[MAX_HEAD_DIM];
  widen_f16((const uint16_t *)p, scales, rows);
  widen_f16((const uint16_t *)p + rows, mins, rows);
  const uint8_t *q = p + 4 * rows;
  for (int r = 0; r < rows; r++, q += n / 2, out += n) widen_nibbles(q, n / 2, scales[r], mins[r], out);
  return q;
}

// Widens one head of a packed page to f32: keys[head_dim][16], values[16][head_dim].
void widen_packed(const uint8_t *layer, int kind, int kv_head, int head_dim, float *keys, float *values) {
  const uint8_t *p = layer + (size_t)kv_head * head_bytes(kind, head_dim);
  if (kind == PAGES_Q8) widen_q8(widen_q8(p, head_dim, PAGE_TOKENS, keys), PAGE_TOKENS, head_dim, values);
  else widen_q4(widen_q4(p, head_dim, PAGE_TOKENS, keys), PAGE_TOKENS, head_dim, values);
}

// Widens one head of a writable page to f32.
void widen_float(const uint8_t *layer, int kind, int kv_heads, int kv_head, int head_dim, float *keys, float *values) {
  const int n = head_dim * PAGE_TOKENS;
  const size_t key_at = (size_t)kv_head * n, value_at = (size_t)(kv_heads + kv_head) * n;
  if (kind == PAGES_F32) {
    memcpy(keys, (const float *)layer + key_at, sizeof(float) * (size_t)n);
    memcpy(values, (const float *)layer + value_at, sizeof(float) * (size_t)n);
  } else {
    widen_f16((const uint16_t *)layer + key_at, keys, n);
    widen_f16((const uint16_t *)layer + value_at, values, n);
  }
}

// Rounds up, so that the largest value needs no clamping; returns 0 if there is nothing to divide by.
static float store_scale(float value, uint16_t *scale) {
  uint16_t bits = float_to_half(value);
  if (half_to_float(bits) < value) bits++;
  *scale = bits >= 0x7c00 ? HALF_NAN : bits;
  return bits >= 0x7c00 ? 0 : half_to_float(bits);
}

static uint16_t half_below(float value) {
  if (value == 0) return 0; // never -0
  const uint16_t bits = float_to_half(value);
  if (!(half_to_float(bits) > value)) return bits;
  return bits >= 0x8000 ? bits + 1 : bits - 1;
}

static uint8_t *pack_q8(const float *x, int rows, int n, uint8_t *p) {
  uint16_t *scales = (uint16_t *)p;
  int8_t *q = (int8_t *)p + 2 * rows;
  for (int r = 0; r < rows; r++, x += n, q += n) {
    const float step = store_scale(peak_magnitude(x, n) / 127, &scales[r]);
    for (int i = 0; i < n; i++) q[i] = step == 0 ? 0 : (int8_t)rintf(x[i] / step);
  }
  return (uint8_t *)q;
}

static uint8_t *pack_q4(const float *x, int rows, int n, uint8_t *p) {
  uint16_t *scales = (uint16_t *)p, *mins = scales + rows;
  uint8_t *bytes = p + 4 * rows;
  for (int r = 0; r < rows; r++, x += n, bytes += n / 2) {
    float least = x[0], largest = x[0];
    for (int i = 0; i < n; i++) {
      if (x[i] < least) least = x[i];
      if (x[i] > largest) largest = x[i];
      if (x[i] != x[i]) least = largest = NAN; // comparisons skip it
    }
    const uint16_t bits = half_below(least);
    const float min = half_to_float(bits), step = store_scale((largest - min) / 15, &scales[r]);
    mins[r] = (bits & 0x7c00) == 0x7c00 ? 0 : bits;
    for (int i = 0; i < n / 2; i++) {
      const float low = step == 0 ? 0 : rintf((x[i] - min) / step), high = step == 0 ? 0 : rintf((x[i + n / 2] - min) / step);
      bytes[i] = (uint8_t)((int)low | (int)high << 4);
    }
  }
  return bytes;
}

// args: 2 base, 3 pageBytes, 4 layerBytes, 5 kvHeads, 6 headDim, 7 kind of the source pages; 8 base, 9 pageBytes, 10 layerBytes,
// 11 kind of the target pages; 12 pairs of pages, 13 pages, 14 first layer, 15 layers. A token is a head of a page's layer.
void rows_pack_pages(const Context *c, const Record *op, int first, int end) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), layers = arg_i(op, 15), kind = arg_i(op, 11);
  const int32_t *pages = (const int32_t *)(c->base + arg_u(op, 12));
  float *keys = (float *)c->scratch, *values = keys + (size_t)head_dim * PAGE_TOKENS;
  for (int item = first; item < end; item++) {
    const int head = item % kv_heads, layer = arg_i(op, 14) + item / kv_heads % layers;
    const int32_t *pair = pages + 2 * (item / kv_heads / layers);
    const uint8_t *from = c->base + arg_u(op, 2) + (size_t)pair[0] * arg_u(op, 3) + (size_t)layer * arg_u(op, 4);
    uint8_t *to = c->base + arg_u(op, 8) + (size_t)pair[1] * arg_u(op, 9) + (size_t)layer * arg_u(op, 10) + (size_t)head * head_bytes(kind, head_dim);
    widen_float(from, arg_i(op, 7), kv_heads, head, head_dim, keys, values);
    if (kind == PAGES_Q8) pack_q8(values, PAGE_TOKENS, head_dim, pack_q8(keys, head_dim, PAGE_TOKENS, to));
    else pack_q4(values, PAGE_TOKENS, head_dim, pack_q4(keys, head_dim, PAGE_TOKENS, to));
  }
}
