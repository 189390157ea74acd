#include "cairn/sim/host/family_of.h"
#include "cairn/sim/host/lockstep_families.h"

namespace cairn::sim {

ProcessorFamily any_processor() { return family_of<32>(); }

}  // namespace cairn::sim
