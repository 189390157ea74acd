#include "cairn/core/support/processor.h"

#include "cairn/tests/catch.h"

namespace cairn::tests::processor_test {

// The expected family comes from __builtin_cpu_supports(), which is reliable only in GCC. So only GCC compiles this
// test.
#if defined(__x86_64__) && !defined(__clang__)
TEST_CASE("the family of the processor is the one that the compiler finds") {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  CHECK(core::processor() == (avx512 ? core::Processor::avx512 : avx2 ? core::Processor::avx2 : core::Processor::any));
}
#endif

}  // namespace cairn::tests::processor_test
