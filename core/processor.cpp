#include "cairn/core/support/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cairn::core {

#if defined(__x86_64__)
namespace {

Processor find() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kFma = 1U << 12, kPopcnt = 1U << 23, kSavesRegisters = 1U << 27, kAvx = 1U << 28;  // bits of ecx
  constexpr unsigned kNeeded = kFma | kPopcnt | kSavesRegisters | kAvx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kNeeded) != kNeeded) return Processor::any;
  unsigned saved = 0, high = 0;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  constexpr unsigned kAvx2 = 1U << 3 | 1U << 5;                            // bits of ebx: BMI1, AVX2
  constexpr unsigned kAvx512 = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31;  // bits of ebx: F, DQ, BW, VL
  constexpr unsigned kYmm = 0x6, kZmm = 0xE6;                              // xgetbv bits: saved registers
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (ebx & kAvx2) != kAvx2 || (saved & kYmm) != kYmm)
    return Processor::any;
  return (ebx & kAvx512) == kAvx512 && (saved & kZmm) == kZmm ? Processor::avx512 : Processor::avx2;
}

}  // namespace

Processor processor() {
  static const Processor found = find();
  return found;
}
#else
Processor processor() { return Processor::any; }
#endif

}  // namespace cairn::core
