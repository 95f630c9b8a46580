// Peak speeds of this machine for a number of threads, as JSON:
//   machine-peak stream THREADS BYTES   {"gigabytesPerSecond": …}   reading memory
//   machine-peak peak THREADS           {"sdot": …, "vnni": …, "amx": …}       10^9 int8 multiply-adds per second, null without them
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __AMX_INT8__
#include <immintrin.h>
#endif

enum { PASSES = 5, STREAMS = 4, MAX_THREADS = 256, HUGE_PAGE = 2 << 20 };

typedef uint64_t lanes __attribute__((vector_size(64)));
typedef void work_fn(int thread);

static int num_threads;
static pthread_barrier_t barrier;
static work_fn *prepare, *work;
static char *buffer;
static size_t part_bytes; // per thread, a multiple of STREAMS * sizeof(lanes)
static volatile uint64_t sink;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *run_thread(void *arg) {
  int thread = (int)(intptr_t)arg;
  if (prepare) prepare(thread);
  for (int pass = 0; pass < PASSES; pass++) {
    pthread_barrier_wait(&barrier);
    work(thread);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

// Seconds of the best pass: the others were disturbed.
static double best_pass(work_fn *prepare_part, work_fn *work_part) {
  pthread_t threads[MAX_THREADS];
  prepare = prepare_part;
  work = work_part;
  pthread_barrier_init(&barrier, NULL, num_threads);
  for (int i = 1; i < num_threads; i++) pthread_create(&threads[i], NULL, run_thread, (void *)(intptr_t)i);
  if (prepare) prepare(0);
  double best = 1e30;
  for (int pass = 0; pass < PASSES; pass++) {
    pthread_barrier_wait(&barrier);
    double start = now();
    work(0);
    pthread_barrier_wait(&barrier);
    double seconds = now() - start;
    if (seconds < best) best = seconds;
  }
  for (int i = 1; i < num_threads; i++) pthread_join(threads[i], NULL);
  return best;
}

static void touch_part(int thread) { memset(buffer + thread * part_bytes, 1, part_bytes); }

// Several concurrent streams: with one, a core would wait for one prefetcher.
static void read_part(int thread) {
  size_t count = part_bytes / STREAMS / sizeof(lanes);
  const lanes *a = (const lanes *)(buffer + thread * part_bytes), *b = a + count, *c = b + count, *d = c + count;
  lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (size_t i = 0; i < count; i++) {
    s0 += a[i];
    s1 += b[i];
    s2 += c[i];
    s3 += d[i];
  }
  s0 += s1 + s2 + s3;
  sink += s0[0] + s0[7];
}

static int print_stream(size_t bytes) {
  part_bytes = bytes / num_threads / (STREAMS * sizeof(lanes)) * (STREAMS * sizeof(lanes));
  size_t total = part_bytes * num_threads;
  char *mapped = mmap(NULL, total + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    fprintf(stderr, "no memory for %zu bytes\n", total);
    return 1;
  }
  buffer = (char *)(((uintptr_t)mapped + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
#ifdef MADV_HUGEPAGE
  madvise(buffer, total, MADV_HUGEPAGE);
#endif
  printf("{\"gigabytesPerSecond\":%.3f}\n", total / best_pass(touch_part, read_part) / 1e9);
  return 0;
}

#define REPEATS 16000000 // about 50 ms

#ifdef __ARM_FEATURE_DOTPROD
static void multiply_sdot(int thread) {
  (void)thread;
#define STEP(sum) "sdot v" #sum ".4s, v0.16b, v1.16b\n"
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    __asm__ volatile(STEP(16) STEP(17) STEP(18) STEP(19) STEP(20) STEP(21) STEP(22) STEP(23)
                     ::: "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23");
  }
}
static double sdot_macs(void) { return (double)REPEATS * 8 * 16; }
#endif

#ifdef __AVX512VNNI__
enum { SUMS = 12 }; // two units, five cycles of latency each

// Named registers, because the compiler would copy the sums. Their values do not matter.
static void multiply_vnni(int thread) {
  (void)thread;
#define STEP(sum) "vpdpbusd %%zmm0, %%zmm1, %%zmm" #sum "\n"
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    __asm__ volatile(STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13)
                     ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                     "xmm11", "xmm12", "xmm13");
  }
}
static double vnni_macs(void) { return (double)REPEATS * SUMS * 64; }
#endif

#ifdef __AMX_INT8__
// The kernel grants the tile registers only on request (ARCH_REQ_XCOMP_PERM, XTILEDATA).
static int has_tiles(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

// All eight tiles have 16 rows of 64 bytes. Volatile: compilers take the load for one of eight bytes.
static void configure_tiles(int thread) {
  (void)thread;
  static volatile struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config;
  for (int i = 0; i < 8; i++) config.row_bytes[i] = 64, config.rows[i] = 16;
  config.palette = 1;
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

static void multiply_amx(int thread) {
  (void)thread;
  for (int repeat = 0; repeat < REPEATS / 16; repeat++) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
}
static double amx_macs(void) { return (double)(REPEATS / 16) * 4 * 16 * 16 * 64; }
#endif

static int print_peak(void) {
  char sdot[32] = "null", vnni[32] = "null", amx[32] = "null";
#ifdef __ARM_FEATURE_DOTPROD
  snprintf(sdot, sizeof sdot, "%.1f", sdot_macs() * num_threads / best_pass(NULL, multiply_sdot) / 1e9);
#endif
#ifdef __AVX512VNNI__
  snprintf(vnni, sizeof vnni, "%.1f", vnni_macs() * num_threads / best_pass(NULL, multiply_vnni) / 1e9);
#endif
#ifdef __AMX_INT8__
  if (has_tiles())
    snprintf(amx, sizeof amx, "%.1f", amx_macs() * num_threads / best_pass(configure_tiles, multiply_amx) / 1e9);
#endif
  printf("{\"sdot\":%s,\"vnni\":%s,\"amx\":%s}\n", sdot, vnni, amx);
  return 0;
}

int main(int argc, char **argv) {
  num_threads = argc > 2 ? atoi(argv[2]) : 0;
  if (num_threads < 1 || num_threads > MAX_THREADS) return 2;
  if (strcmp(argv[1], "stream") == 0 && argc == 4) return print_stream(strtoull(argv[3], NULL, 10));
  if (strcmp(argv[1], "peak") == 0) return print_peak();
  return 2;
}
