#include "platform.h"
#if !defined(_WIN32)
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *allocate_aligned(size_t alignment, size_t bytes) {
  void *data = NULL;
  return posix_memalign(&data, alignment, bytes) == 0 ? data : NULL;
}
void free_aligned(void *data) { free(data); }

static void prefer_large_pages(void *data, size_t bytes) {
#if defined(MADV_HUGEPAGE)
  madvise(data, bytes, MADV_HUGEPAGE);
#else
  (void)data, (void)bytes;
#endif
}

enum { ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, READ_WRITE = PROT_READ | PROT_WRITE };

void *reserve_memory(size_t bytes) {
  void *data = mmap(NULL, bytes, READ_WRITE, ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return NULL;
  prefer_large_pages(data, bytes);
  return data;
}

void release_memory(void *data, size_t bytes) { munmap(data, bytes); }

int clear_pages(uint8_t *at, size_t bytes) {
  if (mmap(at, bytes, READ_WRITE, ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) return 0;
  prefer_large_pages(at, bytes);
  return 1;
}

int map_file_pages(uint8_t *at, size_t bytes, int file, uint64_t file_offset) {
  return mmap(at, bytes, READ_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, (off_t)file_offset) != MAP_FAILED;
}

// In pieces: page faults of other threads wait for one of them at most. Memory freed meanwhile is not an error.
void populate_pages(uint8_t *at, size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
  const size_t piece = (size_t)8 << 20;
  for (size_t done = 0; done < bytes; done += piece)
    if (madvise(at + done, bytes - done < piece ? bytes - done : piece, MADV_POPULATE_WRITE) != 0) break;
#else
  (void)at, (void)bytes;
#endif
}

int read_file_at(int file, uint8_t *target, size_t bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = pread(file, target + done, bytes - done, (off_t)(offset + done));
    if (count <= 0) return 0;
    done += (size_t)count;
  }
  return 1;
}
#endif
