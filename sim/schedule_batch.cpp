#include "cairn/sim/schedule_batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cairn/core/error.h"

namespace cairn::sim {
namespace {

constexpr std::int64_t kMostSteps = std::numeric_limits<std::int32_t>::max() - 1;

template <class Id>
constexpr Id kUnknown = std::numeric_limits<Id>::max();

}  // namespace

ScheduleBatch::ScheduleBatch(core::NodeId node_count) : node_count_(node_count) {
  if (node_count >= kUnknown<std::uint16_t>) steps_ = std::vector<std::uint32_t>();
}

void ScheduleBatch::add(std::span<const core::NodeId> steps) {
  if (static_cast<std::int64_t>(steps.size()) > kMostSteps)
    throw core::InputError("the schedule has more than 2^31 - 2 steps");
  begin_.push_back(total_steps());
  if (has_transfers()) {
    copies_begin_.push_back(static_cast<std::int64_t>(copies_.size()));
    copies_count_.push_back(0);
  }
  length_.push_back(static_cast<std::int32_t>(steps.size()));
  std::visit(
      [&](auto& all) {
        using Id = typename std::decay_t<decltype(all)>::value_type;
        for (const core::NodeId v : steps) {
          all.push_back(v >= 0 && v < node_count_ ? static_cast<Id>(v) : kUnknown<Id>);
        }
      },
      steps_);
}

void ScheduleBatch::clear() {
  std::visit([](auto& all) { all.clear(); }, steps_);
  begin_.clear();
  length_.clear();
  copies_.clear();
  copies_begin_.clear();
  copies_count_.clear();
}

std::int64_t ScheduleBatch::total_steps() const {
  return std::visit([](const auto& all) { return static_cast<std::int64_t>(all.size()); }, steps_);
}

core::Schedule ScheduleBatch::schedule(std::int64_t candidate) const {
  core::Schedule schedule;
  visit_batch(*this, [&](const auto& view) {
    for (std::int32_t i = 0; i < view.length[candidate]; ++i) {
      const std::int64_t v = view.steps[view.begin[candidate] + i];
      schedule.steps.push_back(v < node_count_ ? static_cast<core::NodeId>(v) : core::kNoNode);
    }
  });
  if (!has_transfers()) return schedule;
  const std::int32_t count = copies_count_[candidate];
  const Copy* copies = copies_.data() + copies_begin_[candidate];
  const auto fetches = static_cast<std::size_t>(
      std::count_if(copies, copies + count, [](const Copy& copy) { return (copy.kind & Copy::kFetch) != 0; }));
  schedule.transfers.fetches.resize(fetches);
  schedule.transfers.evicts.resize(static_cast<std::size_t>(count) - fetches);
  for (const Copy& copy : std::span(copies, static_cast<std::size_t>(count))) {
    if ((copy.kind & Copy::kFetch) == 0) {
      schedule.transfers.evicts[copy.index] = {copy.value, copy.from, copy.start, copy.finish};
    } else {
      schedule.transfers.fetches[copy.index] = {copy.from < 0 ? -1 : copies[copy.from].index, copy.start, copy.finish};
    }
  }
  return schedule;
}

std::int64_t ScheduleBatch::bytes() const {
  const std::int64_t of_step = narrow() ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  constexpr auto kOfCandidate = static_cast<std::int64_t>(sizeof(std::int64_t) + sizeof(std::int32_t));
  return total_steps() * of_step + count() * kOfCandidate + std::ssize(copies_) * std::int64_t{sizeof(Copy)} +
         std::ssize(copies_count_) * kOfCandidate;
}

void ScheduleBatch::resize_padded(std::int64_t count, std::int64_t stride) {
  std::visit([&](auto& all) { all.resize(static_cast<std::size_t>(count * stride)); }, steps_);
  begin_.resize(static_cast<std::size_t>(count));
  length_.assign(static_cast<std::size_t>(count), 0);
  for (std::int64_t c = 0; c < count; ++c) begin_[c] = c * stride;
}

void ScheduleBatch::set_copies(std::vector<Copy> copies, const std::vector<std::int32_t>& counts) {
  copies_ = std::move(copies);
  copies_count_ = counts;
  copies_begin_.resize(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), copies_begin_.begin(), std::int64_t{0});
}

void Outcomes::resize(std::int64_t count, bool transfers) {
  const auto size = static_cast<std::size_t>(count);
  valid.resize(size);
  peak.resize(size);
  cost.resize(size);
  peak_step.resize(size);
  host_peak.resize(transfers ? size : 0);
  defect.resize(transfers ? size : 0);
}

}  // namespace cairn::sim
