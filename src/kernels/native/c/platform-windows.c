// Linked and inspected by the project, but not run by it: `ruvllm doctor` says so, and the self-check decides on each machine.
#include "platform.h"
#if defined(_WIN32)
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

int platform_clock(int clock, struct timespec *now) {
  LARGE_INTEGER frequency, ticks;
  (void)clock;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&ticks);
  now->tv_sec = (time_t)(ticks.QuadPart / frequency.QuadPart);
  now->tv_nsec = (long)(ticks.QuadPart % frequency.QuadPart * 1000000000 / frequency.QuadPart);
  return 0;
}

// Rounded up to a millisecond, the finest wait available: rounded down, a short wait would be a busy loop.
int platform_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end) {
  struct timespec now;
  platform_clock(CLOCK_REALTIME, &now);
  const int64_t ns = (int64_t)(end->tv_sec - now.tv_sec) * 1000000000 + (end->tv_nsec - now.tv_nsec);
  if (ns <= 0) return 1;
  return SleepConditionVariableSRW(condition, mutex, (DWORD)((ns + 999999) / 1000000), 0) == 0;
}

typedef struct {
  void *(*start)(void *);
  void *argument;
} Entry;

static DWORD WINAPI enter(void *data) {
  const Entry entry = *(Entry *)data;
  free(data);
  entry.start(entry.argument);
  return 0;
}

int platform_start_thread(pthread_t *thread, const void *attributes, void *(*start)(void *), void *argument) {
  Entry *entry = malloc(sizeof *entry);
  (void)attributes;
  if (!entry) return 1;
  *entry = (Entry){start, argument};
  *thread = CreateThread(NULL, 0, enter, entry, 0, NULL);
  if (*thread) return 0;
  free(entry);
  return 1;
}

int platform_join_thread(pthread_t thread, void **result) {
  (void)result;
  WaitForSingleObject(thread, INFINITE);
  return CloseHandle(thread) == 0;
}

void *allocate_aligned(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
void free_aligned(void *data) { _aligned_free(data); }
void *reserve_memory(size_t bytes) { return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }
void release_memory(void *data, size_t bytes) {
  (void)bytes;
  VirtualFree(data, 0, MEM_RELEASE);
}
int clear_pages(uint8_t *at, size_t bytes) { return memset(at, 0, bytes) != NULL; }
void populate_pages(uint8_t *at, size_t bytes) { (void)at, (void)bytes; }

// Node's file descriptors belong to its own C runtime and mean nothing in this library's.
int map_file_pages(uint8_t *at, size_t bytes, int file, uint64_t file_offset) { return (void)at, (void)bytes, (void)file, (void)file_offset, 0; }
int read_file_at(int file, uint8_t *target, size_t bytes, uint64_t offset) { return (void)file, (void)target, (void)offset, bytes == 0; }
#endif
