#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Stores a Pareto front: a set of entries with two measures, for example memory and cost, where less is better. An
/// entry is kept only while no other entry is at most as large in both measures.
template <class Entry = std::monostate>
class Front {
 public:
  struct Item {
    std::int64_t second = 0;
    Entry entry;
  };
  /// The entries, sorted by ascending first measure. The second measure then descends, because an entry that is larger
  /// in both measures would have been removed.
  using Items = std::map<std::int64_t, Item>;

  /// Adds an entry, and removes all entries that are at least as large as the new one in both measures. Returns false
  /// and changes nothing if a stored entry is at most as large as the new one in both measures. O(log size), amortised.
  bool add(std::int64_t first, std::int64_t second, Entry entry = {}) {
    const Item* const known = within(first);
    if (known != nullptr && known->second <= second) return false;
    auto after = items_.lower_bound(first);
    while (after != items_.end() && after->second.second >= second) after = items_.erase(after);
    items_.emplace_hint(after, first, Item{second, std::move(entry)});
    return true;
  }
  /// Finds the entry with the least second measure among the entries whose first measure is at most `most`. Returns
  /// nullptr if there is no such entry.
  const Item* within(std::int64_t most) const {
    const auto above = items_.upper_bound(most);
    return above == items_.begin() ? nullptr : &std::prev(above)->second;
  }
  const Items& items() const { return items_; }

 private:
  Items items_;
};

/// Returns the tradeoffs that no other tradeoff dominates, by ascending peak. A tradeoff dominates another one if it is
/// at most as large in both peak and cost. Of equal tradeoffs, one is kept. O(k log k) for k tradeoffs.
inline std::vector<Tradeoff> undominated(const std::vector<Tradeoff>& all) {
  Front<> front;
  for (const Tradeoff& one : all) front.add(one.peak, one.cost);
  std::vector<Tradeoff> best;
  for (const auto& [peak, item] : front.items()) best.push_back({peak, item.second});
  return best;
}

}  // namespace cairn::solvers
