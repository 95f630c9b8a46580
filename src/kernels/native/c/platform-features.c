// Not __builtin_cpu_supports: that needs a table of the compiler's runtime library, which not every linker adds.
#include "platform.h"
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static uint64_t enabled_registers(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int has_bits(unsigned word, unsigned bits) { return (word & bits) == bits; }

int find_features(Feature out[MAX_FEATURES]) {
  unsigned a = 0, b = 0, c = 0, d = 0, basic = 0, unused, b7 = 0, c7 = 0, d7 = 0, a71 = 0;
  __get_cpuid(1, &a, &b, &basic, &d);
  if (__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) && a >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &unused);
  // Using registers that the system does not save ends the process: bit 27, then XMM and YMM, then the three of AVX-512.
  const uint64_t saved = has_bits(basic, 1u << 27) ? enabled_registers() : 0;
  const int has_avx2 = (saved & 0x6) == 0x6 && has_bits(basic, 1u << 12 | 1u << 28 | 1u << 29) && has_bits(b7, 1u << 5);
  // F, DQ, CD, BW, VL: extensions that -march=cascadelake lets the compiler use besides VNNI.
  const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
  const int has_avx512 = has_avx2 && (saved & 0xe6) == 0xe6 && has_bits(b7, avx512) && has_bits(c7, 1u << 11);
  int has_amx = 0;
#if defined(__linux__)
  // AMX-TILE and AMX-INT8, and permission to use tile registers, which later threads inherit.
  has_amx = has_bits(d7, 1u << 24 | 1u << 25) && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  (void)d7;
#endif
  out[0] = (Feature){"avx2", has_avx2};
  out[1] = (Feature){"avxvnni", has_avx2 && (a71 >> 4 & 1)};
  out[2] = (Feature){"avx512vnni", has_avx512};
  out[3] = (Feature){"amx", has_avx512 && has_amx};
  return 4;
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

// HWCAP_ASIMDDP and HWCAP2_I8MM, by number: older headers lack the names.
int find_features(Feature out[MAX_FEATURES]) {
  const int has_dotprod = getauxval(AT_HWCAP) >> 20 & 1;
  out[0] = (Feature){"dotprod", has_dotprod};
  out[1] = (Feature){"i8mm", has_dotprod && (getauxval(AT_HWCAP2) >> 13 & 1)};
  return 2;
}
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

static int has_feature(const char *name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value == 1;
}

int find_features(Feature out[MAX_FEATURES]) {
  const int has_dotprod = has_feature("hw.optional.arm.FEAT_DotProd");
  out[0] = (Feature){"dotprod", has_dotprod};
  out[1] = (Feature){"i8mm", has_dotprod && has_feature("hw.optional.arm.FEAT_I8MM")};
  return 2;
}
#else
int find_features(Feature out[MAX_FEATURES]) { return (void)out, 0; }
#endif
