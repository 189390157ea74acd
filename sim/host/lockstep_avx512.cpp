#include "cairn/sim/host/lockstep.h"
// The standard library and shared headers are included before `#pragma GCC target`, so that they are compiled for every
// processor.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "cairn/sim/device/random_order.h"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
#include "cairn/sim/host/lockstep_lanes.h"

namespace cairn::sim {

ProcessorFamily avx512() { return family_of<64>(); }

}  // namespace cairn::sim
