#include "cairn/sim/device/transfers/copies.h"

#include <limits>

#include "cairn/sim/schedule_batch.h"

namespace cairn::sim {
namespace {

/// Returns whether all numbers fit into 32 bits.
template <class... Numbers>
bool fit(Numbers... numbers) {
  using Limits = std::numeric_limits<std::int32_t>;
  return ((numbers >= Limits::min() && numbers <= Limits::max()) && ...);
}

}  // namespace

void ScheduleBatch::add(const core::Schedule& schedule) {
  if (!schedule.transfers.empty() && !has_transfers()) {
    copies_begin_.assign(length_.size(), 0);
    copies_count_.assign(length_.size(), 0);
  }
  const auto& [evicts, fetches] = schedule.transfers;
  const bool first = !schedule.transfers.empty() && copies_count_.empty();
  add(schedule.steps);
  if (first) {
    copies_begin_.push_back(0);
    copies_count_.push_back(0);
  }
  if (schedule.transfers.empty()) return;
  const std::size_t begin = copies_.size();
  for (std::size_t e = 0; e < evicts.size(); ++e) {
    Copy copy{.index = static_cast<std::int32_t>(e)};
    if (const core::Evict& evict = evicts[e]; fit(evict.made, evict.start, evict.finish)) {
      copy.value = evict.value;
      copy.from = static_cast<std::int32_t>(evict.made);
      copy.start = static_cast<std::int32_t>(evict.start);
      copy.finish = static_cast<std::int32_t>(evict.finish);
    }
    copies_.push_back(copy);
  }
  for (std::size_t f = 0; f < fetches.size(); ++f) {
    Copy copy{.index = static_cast<std::int32_t>(f), .kind = Copy::kFetch};
    const core::Fetch& fetch = fetches[f];
    if (fit(fetch.start, fetch.finish) && fetch.evict >= 0 && fetch.evict < std::ssize(evicts)) {
      copy.value = evicts[fetch.evict].value;
      copy.from = fetch.evict;
      copy.start = static_cast<std::int32_t>(fetch.start);
      copy.finish = static_cast<std::int32_t>(fetch.finish);
    }
    copies_.push_back(copy);
  }
  const auto count = static_cast<std::int32_t>(copies_.size() - begin);
  std::vector<device::CopyKey> keys(static_cast<std::size_t>(count));
  device::arrange_copies(copies_.data() + begin, count, keys.data());
  copies_count_.back() = count;
}

}  // namespace cairn::sim
