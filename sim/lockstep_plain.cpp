#include "sim/internal/family_of.h"
#include "sim/internal/lockstep_families.h"

namespace cairn::sim {

ProcessorFamily any_processor() { return family_of<32>(); }

}  // namespace cairn::sim
