#define CAIRN_VECTOR_BYTES 0
#include "cairn/sim/host/lockstep/lockstep_lanes.h"

namespace cairn::sim {

ProcessorFamily any_processor() { return family_of<32>(); }

}  // namespace cairn::sim
