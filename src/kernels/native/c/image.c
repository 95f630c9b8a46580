// Weights in arena layout, stored on disk: all threads read and check them, because a silently changed weight is worse than a
// slow start.
#include "pack.h"
#include "platform.h"
#include <string.h>

static inline uint64_t turn(uint64_t v, int bits) { return v << bits | v >> (64 - bits); }

// Every step is reversible in the word and in the sum, so one changed word always shows.
static uint64_t checksum(const uint8_t *data, size_t bytes) {
  uint64_t sums[4] = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u, 0x082efa98ec4e6c89u}, last[4] = {0};
  const size_t whole = bytes / 32 * 32;
  for (size_t i = 0; i < whole; i += 32)
    for (int lane = 0; lane < 4; lane++) {
      uint64_t word;
      memcpy(&word, data + i + 8 * lane, 8);
      sums[lane] = turn(sums[lane] ^ word, 29) * 0x9e3779b97f4a7c15u;
    }
  memcpy(last, data + whole, bytes - whole);
  uint64_t sum = bytes;
  for (int lane = 0; lane < 4; lane++) {
    sum = turn(sum ^ sums[lane], 31) * 0xbf58476d1ce4e5b9u;
    sum = turn(sum ^ last[lane], 31) * 0x94d049bb133111ebu;
  }
  return sum ^ sum >> 32;
}

// args: 2 memory, 3 bytes, 4 u64 checksums, one per chunk, 5 bytes of a chunk, 6 file descriptor + 1, or 0 if the bytes are
// already in memory, 7 their start in the file. A chunk that cannot be read gets the checksum 0.
void op_image(const Context *c, const Record *program, const Record *op) {
  uint8_t *memory = c->base + arg_u(op, 2);
  uint64_t *sums = (uint64_t *)(c->base + arg_u(op, 4));
  const size_t bytes = arg_u(op, 3), chunk_bytes = arg_u(op, 5);
  const int file = arg_i(op, 6) - 1;
  const size_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  for (size_t i = (size_t)take_chunk(c, program, op); i < chunks; i = (size_t)take_chunk(c, program, op)) {
    const size_t at = i * chunk_bytes, n = bytes - at < chunk_bytes ? bytes - at : chunk_bytes;
    sums[i] = file >= 0 && !read_file_at(file, memory + at, n, arg_u(op, 7) + at) ? 0 : checksum(memory + at, n);
  }
}
