#pragma once

namespace cairn::core {

/// Families of x86 processors for which some loops are compiled separately, each with all that the former has.
enum class Processor { any, avx2, avx512 };

/// Returns the family of the processor that runs this. avx2 also means fma; avx512 means its parts F, BW, DQ and VL.
/// The operating system must save the registers. Asks the processor itself, because __builtin_cpu_supports() of Zig's
/// Clang, with which wheels are built, answers no to everything.
Processor processor();

}  // namespace cairn::core
