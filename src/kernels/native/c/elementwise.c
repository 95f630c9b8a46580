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
      // Squares in f32, their sum in f64, as llama.cpp does.
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
      // Overflown squares would make the scale, and with it a wrong row, silently zero.
      const float scale = mean <= 3.4e38f ? 1 / sqrtf(mean + arg_f(op, 7)) : NAN;
      for (i = 0; i < dim; i++) out[i] = x[i] * scale * weight[i];
    }
}

// args: 2 x, 3 cosSin, 4 tokens, 5 heads, 6 headDim, 7 rotaryDim, 8 halves.
void rows_rope(const Context *c, const Record *op, int first, int end) {
  const int heads = arg_i(op, 5), head_dim = arg_i(op, 6), rotary = arg_i(op, 7);
  const int step = arg_i(op, 8) ? 1 : 2, partner = arg_i(op, 8) ? rotary / 2 : 1;
  for (int t = first; t < end; t++) {
    const float *angles = (const float *)(c->base + arg_u(op, 3)) + (size_t)t * rotary;
    for (int h = 0; h < heads; h++) {
      float *p = (float *)(c->base + arg_u(op, 2)) + ((size_t)t * heads + h) * head_dim;
      for (int i = 0; i < rotary / 2; i++, p += step) {
        const float cos = angles[2 * i], sin = angles[2 * i + 1], a = p[0], b = p[partner];
        p[0] = a * cos - b * sin;
        p[partner] = a * sin + b * cos;
      }
    }
  }
}

enum { ADD, GATE_SILU, GATE_GELU, SOFTCAP, SCALE };

// args: 2 kind, 3 x, 4 y, 5 out, 6 count, 7 factor. A token is MAP_CHUNK values.
void rows_map(const Context *c, const Record *op, int first, int end) {
  const int kind = arg_i(op, 2), count = arg_i(op, 6), from = first * MAP_CHUNK;
  const float *x = (const float *)(c->base + arg_u(op, 3)), *y = (const float *)(c->base + arg_u(op, 4)), f = arg_f(op, 7);
  float *out = (float *)(c->base + arg_u(op, 5));
  const int to = end * MAP_CHUNK < count ? end * MAP_CHUNK : count;
  if (kind == ADD) for (int i = from; i < to; i++) out[i] = x[i] + y[i];
  else if (kind == GATE_SILU || kind == GATE_GELU) gate(kind == GATE_GELU, x + from, y + from, out + from, to - from);
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
