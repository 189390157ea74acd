#pragma once

/// The bytes that executors fill memory with, the same on every machine.
namespace cairn::runtime {

inline constexpr int kArenaPaint = 0xA5;    ///< a new arena, to see later what was written
inline constexpr int kPoison = 0xFF;        ///< what is free: makes every fp32 and bf16 value a NaN
inline constexpr int kSentinel = 0xC5;      ///< the gaps behind buffers
inline constexpr int kDirtyScratch = 0x5A;  ///< the scratch of a synthetic node; no sentinel, so that guards see it

}  // namespace cairn::runtime
