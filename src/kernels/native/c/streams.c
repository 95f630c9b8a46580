// Several residual streams, and statistics of rows.
#include "pack.h"
#include "vector-math.h"

// args: 2 base, 3 x, 4 coefficients, 5 out, 6 streams of out, 7 of x, 8 rows, 9 dim, 10 shift.
void rows_mix_streams(const Context *c, const Record *op, int first, int end) {
  const int num_out = arg_i(op, 6), num_in = arg_i(op, 7), dim = arg_i(op, 9);
  const size_t rows = arg_u(op, 8);
  for (int t = first; t < end; t++) {
    const float *coefficients = (const float *)(c->base + arg_u(op, 4)) + (size_t)t * num_out * num_in;
    for (int i = 0; i < num_out; i++) {
      const size_t at = (i * rows + t) * dim;
      const float *base = (const float *)(c->base + arg_u(op, 2)) + at;
      float *out = (float *)(c->base + arg_u(op, 5)) + at;
      for (int j = 0; j < num_in; j++) {
        const float *x = (const float *)(c->base + arg_u(op, 3)) + (j * rows + t) * dim, factor = coefficients[i * num_in + j] + arg_f(op, 10);
        const float *sum = j == 0 ? base : out;
        for (int k = 0; k < dim; k++) out[k] = sum[k] + factor * x[k];
      }
    }
  }
}

// args: 2 x, 3 target, 4 rows, 5 dim.
void rows_match_lengths(const Context *c, const Record *op, int first, int end) {
  const int dim = arg_i(op, 5);
  for (int r = first; r < end; r++) {
    float *x = (float *)(c->base + arg_u(op, 2)) + (size_t)r * dim;
    const double length = sum_of(x, dim, 0, 2), target = sum_of((const float *)(c->base + arg_u(op, 3)) + (size_t)r * dim, dim, 0, 2);
    const float factor = length == 0 ? 0 : (float)sqrt(target / length);
    for (int i = 0; i < dim; i++) x[i] *= factor;
  }
}

// args: 2 x, 3 rows, 4 dim, 5 threshold.
void rows_sparsify(const Context *c, const Record *op, int first, int end) {
  const int dim = arg_i(op, 4);
  for (int r = first; r < end; r++) {
    float *x = (float *)(c->base + arg_u(op, 2)) + (size_t)r * dim;
    const double mean = sum_of(x, dim, 0, 1) / dim;
    const float cutoff = (float)(mean + (double)arg_f(op, 5) * sqrt(sum_of(x, dim, mean, 2) / (dim - 1)));
    for (int i = 0; i < dim; i++) x[i] = x[i] <= cutoff ? 0 : x[i] - cutoff;
  }
}
