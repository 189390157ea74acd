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

/// The entries met of which no other is as good in both of two measures, say memory and cost. Less is better.
template <class Entry = std::monostate>
class Front {
 public:
  struct Item {
    std::int64_t second = 0;
    Entry entry;
  };
  using Items = std::map<std::int64_t, Item>;  ///< by the first measure, ascending; the second one falls

  /// Adds an entry and drops those that it beats. Returns false, and does nothing, if a known entry is as good.
  /// O(log size), amortised.
  bool add(std::int64_t first, std::int64_t second, Entry entry = {}) {
    const Item* const known = within(first);
    if (known != nullptr && known->second <= second) return false;
    auto after = items_.lower_bound(first);
    while (after != items_.end() && after->second.second >= second) after = items_.erase(after);
    items_.emplace_hint(after, first, Item{second, std::move(entry)});
    return true;
  }
  /// Finds the entry of the least second measure whose first measure is at most `most`; nullptr: there is none.
  const Item* within(std::int64_t most) const {
    const auto above = items_.upper_bound(most);
    return above == items_.begin() ? nullptr : &std::prev(above)->second;
  }
  const Items& items() const { return items_; }

 private:
  Items items_;
};

/// Selects the tradeoffs of which no other is as good in both peak and cost, by ascending peak. O(k log k).
inline std::vector<Tradeoff> undominated(const std::vector<Tradeoff>& all) {
  Front<> front;
  for (const Tradeoff& one : all) front.add(one.peak, one.cost);
  std::vector<Tradeoff> best;
  for (const auto& [peak, item] : front.items()) best.push_back({peak, item.second});
  return best;
}

}  // namespace cairn::solvers
