#pragma once

namespace cairn::core {

/// Families of x86 processors. Some loops are compiled once for each family. Each family has all instructions of the
/// family before it.
enum class Processor { any, avx2, avx512 };

/// Returns the family of the processor that runs this process. avx2 requires that the processor also has FMA, BMI1 and
/// POPCNT; avx512 requires the subsets F, BW, DQ and VL of AVX-512. Both require that the operating system saves the
/// wide registers when it switches threads. Reads CPUID directly: the wheels are built with Zig's Clang, whose
/// __builtin_cpu_supports() always returns false.
Processor processor();

}  // namespace cairn::core
