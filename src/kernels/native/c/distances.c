// Distances between one vector and many, for nearest-neighbour search. A vector's arithmetic never depends on the others.
#include "pack.h"
#include "nearness.h"

enum { MAX_CHUNK = 64, AHEAD = 4 };

// args: 2 query, 3 vectors, 4 number of vectors, 5 dim, 6 bytes, 7 scales, 8 ids or 0, 9 l2, 10 out.
void op_distances(const Context *c, const Record *program, const Record *op) {
  const int count = arg_i(op, 4), dim = arg_i(op, 5), is_bytes = arg_i(op, 6), is_l2 = arg_i(op, 9);
  const float *query = (const float *)(c->base + arg_u(op, 2)), *scales = (const float *)(c->base + arg_u(op, 7));
  const uint8_t *vectors = c->base + arg_u(op, 3);
  const int32_t *ids = arg_u(op, 8) ? (const int32_t *)(c->base + arg_u(op, 8)) : NULL;
  float *out = (float *)(c->base + arg_u(op, 10));
  const size_t bytes = (size_t)dim * (is_bytes ? 1 : 4);
  const int share = count / (c->num_threads * 4), chunk = share < 1 ? 1 : share > MAX_CHUNK ? MAX_CHUNK : share;
  int8_t *q = (int8_t *)c->scratch;
  float query_scale = 0;
  double query_square = 0;
  int32_t query_sum = 0;
  int is_rounded = 0;
  for (int first = take_chunk(c, program, op) * chunk; first < count; first = take_chunk(c, program, op) * chunk) {
    const int end = first + chunk < count ? first + chunk : count;
    if (is_bytes && !is_rounded) {
      is_rounded = 1;
      query_scale = round_query(query, dim, q);
      query_square = (double)query_scale * query_scale * square_bytes(q, dim);
      for (int d = 0; d < dim; d++) query_sum += q[d];
    }
    for (int i = first; i < end; i++) {
      const size_t id = (size_t)(ids ? ids[i] : i);
      const uint8_t *vector = vectors + id * bytes;
      if (ids && i + AHEAD < end) ask_for(vectors + (size_t)ids[i + AHEAD] * bytes, bytes);
      if (!is_bytes) out[i] = is_l2 ? square_floats(query, (const float *)vector, dim) : dot_floats(query, (const float *)vector, dim);
      else {
        const int8_t *v = (const int8_t *)vector;
        const int32_t dot = dot_bytes(v, q, dim, query_sum);
        if (!is_l2) out[i] = (float)dot * (query_scale * scales[id]);
        else out[i] = (float)(query_square + ((double)scales[id] * square_bytes(v, dim) - 2.0 * query_scale * dot) * scales[id]);
      }
    }
  }
}
