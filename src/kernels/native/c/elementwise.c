#include "pack.h"
#include "vector-math.h"
#include <string.h>

// args: 2 x, 3 weight, 4 out, 5 rows, 6 dim, 7 epsilon. A token has one row, or one for each head.
void rows_rms_norm(const Context *c, const Record *op, int first, int end) {
  const float *weight = (const float *)(c->base + arg_u(op, 3));
  const int dim = arg_i(op, 6), per_token = arg_i(op, 5) / arg_i(op, WORD_TOKENS);
    for (int r = first * per_token; r < end * per_token; r++) {
      const float *x = (const float *)(c->base + arg_u(op, 2)) + (size_t)r * dim;
      float *out = (float *)(c->base + arg_u(op, 4)) + (size_t)r * dim;
      // Squares in f32, their sum in f64, like llama.cpp.
      double sums[8] = {0}, sum = 0;
      int i = 0;
      for (; i + 8 <= dim; i += 8)
        for (int k = 0; k < 8; k++) {
          const float square = x[i + k] * x[i + k];
          sums[k] += (double)square;
        }
      for (; i < dim; i++) {
        const float square = x[i] * x[i];
        sum += (double)square;
      }
      for (int k = 0; k < 8; k++) sum += sums[k];
      const float mean = (float)(sum / dim);
      // Overflowing squares would scale the whole row to a plausible zero.
      const float scale = mean <= 3.4e38f ? 1 / sqrtf(mean + arg_f(op, 7)) : NAN;
      for (i = 0; i < dim; i++) out[i] = x[i] * scale * weight[i];
    }
}

// args: 2 x, 3 weight, 4 bias, 5 out, 6 rows, 7 dim, 8 epsilon.
void rows_layer_norm(const Context *c, const Record *op, int first, int end) {
  const float *weight = (const float *)(c->base + arg_u(op, 3)), *bias = (const float *)(c->base + arg_u(op, 4));
  const int dim = arg_i(op, 7);
  for (int r = first; r < end; r++) {
    const float *x = (const float *)(c->base + arg_u(op, 2)) + (size_t)r * dim;
    float *out = (float *)(c->base + arg_u(op, 5)) + (size_t)r * dim;
    const double mean = sum_of(x, dim, 0, 1) / dim;
    const double variance = sum_of(x, dim, mean, 2) / dim;
    // Overflowing sums would scale the whole row to a plausible zero.
    const float scale = variance <= 3.4e38 ? (float)(1 / sqrt(variance + (double)arg_f(op, 8))) : NAN, middle = (float)mean;
    for (int i = 0; i < dim; i++) out[i] = (x[i] - middle) * scale * weight[i] + bias[i];
  }
}

// Pairs (x[2i], x[2i + 1]); `angles` has cos, sin of each pair.
static void rotate_adjacent(float *x, const float *angles, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const Lanes v = load_lanes(x + i), cs = load_lanes(angles + i);
    const Lanes cos = SHUFFLE_LANES(cs, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14);
    const Lanes sin = SHUFFLE_LANES(cs, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15);
    const Lanes other = SHUFFLE_LANES(v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    const Lanes sign = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    store_lanes(x + i, v * cos + other * (sin * sign));
  }
  for (; i < n; i += 2) {
    const float a = x[i], b = x[i + 1];
    x[i] = a * angles[i] - b * angles[i + 1];
    x[i + 1] = a * angles[i + 1] + b * angles[i];
  }
}

// Pairs (x[i], y[i]).
static void rotate_halves(float *x, float *y, const float *angles, int pairs) {
  for (int i = 0; i < pairs; i++) {
    const float cos = angles[2 * i], sin = angles[2 * i + 1], a = x[i], b = y[i];
    x[i] = a * cos - b * sin;
    y[i] = a * sin + b * cos;
  }
}

// args: 2 x, 3 cosSin, 4 tokens, 5 heads, 6 headDim, 7 rotaryDim, 8 halves.
void rows_rope(const Context *c, const Record *op, int first, int end) {
  const int heads = arg_i(op, 5), head_dim = arg_i(op, 6), rotary = arg_i(op, 7), is_halves = arg_i(op, 8);
  for (int t = first; t < end; t++) {
    const float *angles = (const float *)(c->base + arg_u(op, 3)) + (size_t)t * rotary;
    for (int h = 0; h < heads; h++) {
      float *p = (float *)(c->base + arg_u(op, 2)) + ((size_t)t * heads + h) * head_dim;
      if (is_halves) rotate_halves(p, p + rotary / 2, angles, rotary / 2);
      else rotate_adjacent(p, angles, rotary);
    }
  }
}

// GATE_SILU and GATE_GELU are 1 and 2 here, too.
enum { ADD, SOFTCAP = 3, SCALE, ERF_GELU, TANH_GELU, MULTIPLY, CLAMPED, SIGMOID_GATE };

// args: 2 kind, 3 x, 4 y, 5 out, 6 count, 7 factor. A token is MAP_CHUNK values.
void rows_map(const Context *c, const Record *op, int first, int end) {
  const int kind = arg_i(op, 2), count = arg_i(op, 6), from = first * MAP_CHUNK;
  const float *x = (const float *)(c->base + arg_u(op, 3)), *y = (const float *)(c->base + arg_u(op, 4)), f = arg_f(op, 7);
  float *out = (float *)(c->base + arg_u(op, 5));
  const int to = end * MAP_CHUNK < count ? end * MAP_CHUNK : count;
  if (kind == ADD) for (int i = from; i < to; i++) out[i] = x[i] + y[i];
  else if (kind == MULTIPLY) for (int i = from; i < to; i++) out[i] = x[i] * y[i];
  else if (kind == GATE_SILU || kind == GATE_GELU || kind == CLAMPED) gate(kind == CLAMPED ? GATE_CLAMPED : kind, x + from, y + from, out + from, to - from);
  else if (kind == SIGMOID_GATE) for (int i = from; i < to; i++) out[i] = y[i] / (1 + fast_exp(-x[i]));
  else if (kind == ERF_GELU) for (int i = from; i < to; i++) out[i] = erf_gelu(x[i]);
  else if (kind == TANH_GELU) for (int i = from; i < to; i++) out[i] = gelu(x[i]);
  else if (kind == SOFTCAP) for (int i = from; i < to; i++) out[i] = f * fast_tanh(x[i] / f);
  else for (int i = from; i < to; i++) out[i] = x[i] * f;
}

// args: 2 x, 3 rows, 4 out, 5 count, 6 dim.
void rows_copy(const Context *c, const Record *op, int first, int end) {
  const int32_t *rows = (const int32_t *)(c->base + arg_u(op, 3));
  const size_t dim = arg_u(op, 6);
  for (int i = first; i < end; i++)
    memcpy((float *)(c->base + arg_u(op, 4)) + (size_t)i * dim, (const float *)(c->base + arg_u(op, 2)) + (size_t)rows[i] * dim, dim * 4);
}

// args: 2 x, 3 out, 4 outer, 5 inner, 6 width, 7-8 strides of x, 9-10 of out, in values.
void rows_copy_blocks(const Context *c, const Record *op, int first, int end) {
  const size_t width = arg_u(op, 6);
  for (int o = first; o < end; o++) {
    const float *x = (const float *)(c->base + arg_u(op, 2)) + (size_t)o * arg_u(op, 7);
    float *out = (float *)(c->base + arg_u(op, 3)) + (size_t)o * arg_u(op, 9);
    for (int i = 0; i < arg_i(op, 5); i++) memcpy(out + (size_t)i * arg_u(op, 10), x + (size_t)i * arg_u(op, 8), width * sizeof(float));
  }
}
