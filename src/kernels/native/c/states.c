// Operations with a state from token to token. The rows of a sequence are computed in order by one thread, for a part of the
// channels or one head, so that a split into steps or batches changes no bit.
#include "pack.h"
#include "vector-math.h"
#include <string.h>

enum { CONV_CHANNELS = 64, MAX_CONV_WIDTH = 8 };

// The rows of a sequence and its states.
typedef struct {
  int first_row, rows, is_start, copy_after;
  float *state, *copy;
} Rows;

// args: 2 states, 3 bytes of a state, 4 sequences, 5 state table, 6 number of sequences.
static Rows rows_of(const Context *c, const Record *op, int s) {
  const int32_t *sequence = (const int32_t *)(c->base + arg_u(op, 4)) + s * 4, *table = (const int32_t *)(c->base + arg_u(op, 5)) + s * 3;
  uint8_t *states = c->base + arg_u(op, 2);
  return (Rows){sequence[0], sequence[1], sequence[1] == sequence[2], table[1], (float *)(states + arg_u(op, 3) * (uint64_t)table[0]), (float *)(states + arg_u(op, 3) * (uint64_t)table[2])};
}

static void write_past(float *to, size_t stride, const float past[][CONV_CHANNELS], int oldest, int num_past, int n) {
  for (int j = 0; j < num_past; j++) memcpy(to + (size_t)j * stride, past[(oldest + j) % num_past], sizeof(float) * (size_t)n);
}

// args: 7 x, 8 weight, 9 bias or 0, 10 out, 11 channels, 12 width, 13 silu. An item is CONV_CHANNELS channels.
void rows_causal_conv(const Context *c, const Record *op, int first, int end) {
  const int channels = arg_i(op, 11), num_past = arg_i(op, 12) - 1, is_silu = arg_i(op, 13);
  for (int item = first; item < end; item++) {
    const int from = item * CONV_CHANNELS, n = channels - from < CONV_CHANNELS ? channels - from : CONV_CHANNELS;
    const float *weight = (const float *)(c->base + arg_u(op, 8)) + from, *bias = arg_u(op, 9) ? (const float *)(c->base + arg_u(op, 9)) + from : NULL;
    for (int s = 0; s < arg_i(op, 6); s++) {
      const Rows rows = rows_of(c, op, s);
      // A ring: past[oldest] is the input of the token num_past ago.
      float past[MAX_CONV_WIDTH - 1][CONV_CHANNELS] = {{0}};
      int oldest = 0;
      if (!rows.is_start) for (int j = 0; j < num_past; j++) memcpy(past[j], rows.state + (size_t)j * (size_t)channels + from, sizeof(float) * (size_t)n);
      for (int i = 0; i < rows.rows; i++) {
        const size_t at = (size_t)(rows.first_row + i) * (size_t)channels + (size_t)from;
        const float *x = (const float *)(c->base + arg_u(op, 7)) + at;
        float *out = (float *)(c->base + arg_u(op, 10)) + at, sum[CONV_CHANNELS];
        for (int k = 0; k < n; k++) sum[k] = bias ? bias[k] : 0;
        for (int j = 0; j < num_past; j++) {
          const float *p = past[(oldest + j) % num_past], *w = weight + (size_t)j * (size_t)channels;
          for (int k = 0; k < n; k++) sum[k] += w[k] * p[k];
        }
        const float *last = weight + (size_t)num_past * (size_t)channels;
        for (int k = 0; k < n; k++) sum[k] += last[k] * x[k];
        memcpy(past[oldest], x, sizeof(float) * (size_t)n);
        oldest = (oldest + 1) % num_past;
        if (is_silu) for (int k = 0; k < n; k++) out[k] = sum[k] / (1 + fast_exp(-sum[k]));
        else memcpy(out, sum, sizeof(float) * (size_t)n);
        if (i + 1 == rows.copy_after) write_past(rows.copy + from, (size_t)channels, past, oldest, num_past, n);
      }
      write_past(rows.state + from, (size_t)channels, past, oldest, num_past, n);
    }
  }
}

static float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

// args: 7 x, 8 dt, 9 dt bias, 10 a, 11 d, 12 b, 13 c, 14 out, 15 heads, 16 headDim, 17 groups, 18 stateDim. An item is a head.
void rows_selective_scan(const Context *c, const Record *op, int first, int end) {
  const int heads = arg_i(op, 15), head_dim = arg_i(op, 16), groups = arg_i(op, 17), state_dim = arg_i(op, 18);
  const size_t part = (size_t)head_dim * (size_t)state_dim;
  for (int h = first; h < end; h++) {
    const float a = ((const float *)(c->base + arg_u(op, 10)))[h], d = ((const float *)(c->base + arg_u(op, 11)))[h];
    const float bias = ((const float *)(c->base + arg_u(op, 9)))[h];
    const int group = h / (heads / groups);
    for (int s = 0; s < arg_i(op, 6); s++) {
      const Rows rows = rows_of(c, op, s);
      float *state = rows.state + (size_t)h * part;
      if (rows.is_start) memset(state, 0, part * sizeof(float));
      for (int i = 0; i < rows.rows; i++) {
        const size_t t = (size_t)(rows.first_row + i), at = (t * (size_t)heads + (size_t)h) * (size_t)head_dim, from = (t * (size_t)groups + (size_t)group) * (size_t)state_dim;
        const float *x = (const float *)(c->base + arg_u(op, 7)) + at;
        const float *b = (const float *)(c->base + arg_u(op, 12)) + from, *read = (const float *)(c->base + arg_u(op, 13)) + from;
        float *out = (float *)(c->base + arg_u(op, 14)) + at;
        const float step = softplus(((const float *)(c->base + arg_u(op, 8)))[t * (size_t)heads + (size_t)h] + bias), decay = expf(step * a);
        for (int k = 0; k < head_dim; k++) {
          float *row = state + (size_t)k * (size_t)state_dim, tail = 0;
          const float input = x[k] * step;
          Lanes sum = {0};
          int n = 0;
          for (; n + 16 <= state_dim; n += 16) {
            const Lanes next = load_lanes(row + n) * decay + input * load_lanes(b + n);
            store_lanes(row + n, next);
            sum += next * load_lanes(read + n);
          }
          for (; n < state_dim; n++) {
            row[n] = row[n] * decay + input * b[n];
            tail += row[n] * read[n];
          }
          out[k] = sum_lanes(sum) + tail + d * x[k];
        }
        if (i + 1 == rows.copy_after) memcpy(rows.copy + (size_t)h * part, state, part * sizeof(float));
      }
    }
  }
}

static float inverse_length(const float *x, int n, float epsilon) {
  Lanes sum = {0};
  float tail = 0;
  int i = 0;
  for (; i + 16 <= n; i += 16) sum += load_lanes(x + i) * load_lanes(x + i);
  for (; i < n; i++) tail += x[i] * x[i];
  const float length = sqrtf(sum_lanes(sum) + tail);
  return 1 / (length > epsilon ? length : epsilon);
}

// Updates one row of a state; returns its product with q.
static float delta_row(float *row, int n, const float *k, const float *q, float decay, float strength, float k_scale, float value) {
  Lanes sum = {0};
  float tail = 0;
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const Lanes next = load_lanes(row + i) * decay;
    store_lanes(row + i, next);
    sum += next * load_lanes(k + i);
  }
  for (; i < n; i++) tail += (row[i] *= decay) * k[i];
  const float update = (value - (sum_lanes(sum) + tail) * k_scale) * strength * k_scale;
  sum = (Lanes){0};
  tail = 0;
  for (i = 0; i + 16 <= n; i += 16) {
    const Lanes next = load_lanes(row + i) + update * load_lanes(k + i);
    store_lanes(row + i, next);
    sum += next * load_lanes(q + i);
  }
  for (; i < n; i++) tail += (row[i] += update * k[i]) * q[i];
  return sum_lanes(sum) + tail;
}

// args: 7 q, 8 k, 9 v, 10 dt, 11 dt bias, 12 a, 13 beta, 14 out, 15 heads, 16 key heads, 17 keyDim, 18 valueDim, 19 every, 20 epsilon.
// An item is a head.
void rows_delta_scan(const Context *c, const Record *op, int first, int end) {
  const int heads = arg_i(op, 15), key_heads = arg_i(op, 16), key_dim = arg_i(op, 17), value_dim = arg_i(op, 18);
  const size_t part = (size_t)value_dim * (size_t)key_dim;
  const float scale = 1 / sqrtf((float)key_dim);
  for (int h = first; h < end; h++) {
    const float a = ((const float *)(c->base + arg_u(op, 12)))[h], bias = ((const float *)(c->base + arg_u(op, 11)))[h];
    const int key_head = arg_i(op, 19) ? h % key_heads : h / (heads / key_heads);
    for (int s = 0; s < arg_i(op, 6); s++) {
      const Rows rows = rows_of(c, op, s);
      float *state = rows.state + (size_t)h * part;
      if (rows.is_start) memset(state, 0, part * sizeof(float));
      for (int i = 0; i < rows.rows; i++) {
        const size_t t = (size_t)(rows.first_row + i), head = t * (size_t)heads + (size_t)h, from = (t * (size_t)key_heads + (size_t)key_head) * (size_t)key_dim;
        const float *q = (const float *)(c->base + arg_u(op, 7)) + from, *k = (const float *)(c->base + arg_u(op, 8)) + from;
        const float *v = (const float *)(c->base + arg_u(op, 9)) + head * (size_t)value_dim;
        float *out = (float *)(c->base + arg_u(op, 14)) + head * (size_t)value_dim;
        const float decay = expf(softplus(((const float *)(c->base + arg_u(op, 10)))[head] + bias) * a);
        const float strength = 1 / (1 + expf(-((const float *)(c->base + arg_u(op, 13)))[head]));
        const float k_scale = inverse_length(k, key_dim, arg_f(op, 20)), q_scale = inverse_length(q, key_dim, arg_f(op, 20)) * scale;
        for (int j = 0; j < value_dim; j++) out[j] = delta_row(state + (size_t)j * (size_t)key_dim, key_dim, k, q, decay, strength, k_scale, v[j]) * q_scale;
        if (i + 1 == rows.copy_after) memcpy(rows.copy + (size_t)h * part, state, part * sizeof(float));
      }
    }
  }
}
