// Tiles processed in steps of four tokens: for processors whose registers hold no more sums. Requires `fetch`.
#define INLINE static inline __attribute__((always_inline))
// Unrolls loops over registers: otherwise their arrays would be in memory.
#define UNROLL _Pragma("GCC unroll 8")
#define EACH_TOKEN UNROLL for (int t = 0; t < count; t++)

enum { STEP = 4, AHEAD_BYTES = 2304 };

// A body is compiled for each number of tokens per step, so that its arrays become registers. Its arguments are the weights,
// tokens and accumulators of one group and step.
#define BODY(NAME) INLINE void NAME##_of(const uint8_t *table, const uint8_t *w, const Tokens x, const int b, float *acc, const int count)
#define TILE(NAME, STEP_BLOCKS, BYTES)                                                                                \
  void NAME(const Tile *tile, Tokens x) {                                                                             \
    for (int b = tile->first_block; b < tile->end_block; b += STEP_BLOCKS)                                            \
      for (int g = 0; g < tile->groups; g++) {                                                                        \
        const uint8_t *w = tile->w + g * tile->stride + (size_t)(b / STEP_BLOCKS) * BYTES;                            \
        float *acc = tile->acc + g * tile->acc_stride;                                                                \
        if (STEP_BLOCKS == 1) fetch(w + AHEAD_BYTES, BYTES);                                                          \
        for (int t = 0; t < tile->count; t += STEP) {                                                                 \
          const Tokens from = tokens_from(x, t);                                                                      \
          switch (tile->count - t) {                                                                                  \
            case 1: NAME##_of(tile->table, w, from, b, acc + t * GROUP_ROWS, 1); break;                               \
            case 2: NAME##_of(tile->table, w, from, b, acc + t * GROUP_ROWS, 2); break;                               \
            case 3: NAME##_of(tile->table, w, from, b, acc + t * GROUP_ROWS, 3); break;                               \
            default: NAME##_of(tile->table, w, from, b, acc + t * GROUP_ROWS, 4);                                     \
          }                                                                                                           \
        }                                                                                                             \
      }                                                                                                               \
  }
