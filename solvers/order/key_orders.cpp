#include "cairn/solvers/order/internal/key_orders.h"

#include <algorithm>

namespace cairn::solvers {
namespace {

std::vector<core::Segment> segments_of(const Chain& chain) { return {chain.begin(), chain.end()}; }

}  // namespace

std::int32_t KeyTree::reader_count() const {
  return static_cast<std::int32_t>(
      std::count_if(keys.begin(), keys.end(), [](const Key& key) { return key.reads_source; }));
}

KeyOrders::KeyOrders(const KeyTree& tree, core::Stopwatch& watch, int threads, sim::Accelerator* accelerator)
    : watch_(watch), threads_(threads), accelerator_(accelerator) {
  tree_.released = tree.released;
  for (const KeyTree::Key& key : tree.keys) {
    tree_.keys.push_back({key.key, segments_of(*key.rest), key.parent, key.reads_source});
  }
  for (const KeyTree::Free& path : tree.free) tree_.free.push_back({segments_of(*path.chain), path.parent});
}

bool KeyOrders::search() {
  const auto keys = static_cast<std::int64_t>(tree_.keys.size());
  sim::KeyOrderOptions options;
  options.stop = [&](std::int64_t relaxations) { return watch_.charge(relaxations * keys).expired(); };
  if (accelerator_ != nullptr) {
    found_ = accelerator_->key_orders(tree_, options);
  } else {
    core::HostMachine machine(threads_);
    found_ = sim::search_key_orders(tree_, options, machine);
  }
  return found_.complete;
}

}  // namespace cairn::solvers
