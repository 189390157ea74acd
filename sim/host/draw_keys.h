#pragma once

#include <cstdint>
#include <memory>

#include "cairn/sim/device/graph_tables.h"

namespace cairn::sim {

/// The keys by which sim/generator.h sorts nodes, of as many candidates at once as there are lanes. Keeps work arrays
/// of some lanes * n words: use one a thread.
class DrawKeys {
 public:
  virtual ~DrawKeys() = default;
  virtual int lanes() const = 0;
  /// Candidates first .. first + lanes() - 1.
  virtual void draw(std::uint64_t seed, std::int64_t first) = 0;
  /// Of one lane, by node: valid until the next call.
  virtual const std::uint32_t* keys(int lane) = 0;
};

/// The fastest for this processor.
template <class Id>
std::unique_ptr<DrawKeys> make_draw_keys(const device::TablesView<Id>& graph);

}  // namespace cairn::sim
