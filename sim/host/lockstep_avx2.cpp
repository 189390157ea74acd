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
#pragma GCC target("avx2")
#include "cairn/sim/host/lockstep_lanes.h"

namespace cairn::sim {

ProcessorFamily avx2() { return family_of<32>(); }

}  // namespace cairn::sim
