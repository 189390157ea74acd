// On processors that are not x86, this file is empty, because lockstep.cpp calls avx512() only on x86.
#if defined(__x86_64__)
#include "cairn/sim/host/lockstep/lockstep.h"
// The standard library and shared headers are included before `#pragma GCC target`, so that they are compiled for every
// processor.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/sim/device/drawing/random_order.h"
#define CAIRN_VECTOR_BYTES 64
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,popcnt,bmi"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,popcnt,bmi,prefer-vector-width=512")
#endif
#include "cairn/sim/host/lockstep/lockstep_lanes.h"

namespace cairn::sim {

ProcessorFamily avx512() { return family_of<64>(); }

}  // namespace cairn::sim

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif  // __x86_64__
