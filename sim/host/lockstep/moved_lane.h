#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/sim/device/transfers/transfer_profile.h"

// The header lockstep_lanes.h includes this one, and explains why the namespace has no name.
namespace cairn::sim {
namespace {

using device::MovedOutcome;
using device::MovedRow;
using device::MovesView;

/// Does those parts of a candidate's evaluation that only transfers need, for one lane. LockstepOf evaluates the values
/// without transfers in all lanes at once. This class handles the values with transfers one by one, and moves the
/// clocks (of the steps and of the link) from copy to copy.
template <class Id>
class MovedLane {
 public:
  MovedLane(const device::TablesView<Id>& graph, const MovesView& moves) : graph_(graph), moves_(moves) {
    first_of_.assign(static_cast<std::size_t>(graph.value_count), kNone);
  }

  /// Begins the evaluation of a candidate: links the copies of each value into a list (first_of_ and next_). Returns
  /// false if some copy cannot be valid.
  bool begin(const MovedRow<Id>& row) {
    row_ = row;
    values_.clear();
    if (graph_.single_output() ? fails<true>() : fails<false>()) return false;
    next_.resize(static_cast<std::size_t>(row.count));
    for (std::int32_t k = row.count; k-- > 0;) {
      const std::int32_t place = row.copies[k].by_finish;
      if ((row.copies[place].kind & Copy::kUnfetched) != 0) return end_values(false);
      const std::int32_t x = value_of(row.copies[place]).number;
      if (first_of_[x] == kNone) values_.push_back(x);
      next_[place] = first_of_[x];
      first_of_[x] = place;
    }
    return true;
  }

  /// Finds the occurrences of value x, and after which steps their bytes are freed. `made` lists the steps that compute
  /// x, ascending. for_reads(read) must call read(step) for every step that reads x. For every occurrence whose bytes
  /// are freed after its last read, calls free(step) with the step of this read. Returns false if the candidate is
  /// invalid.
  template <class ForReads, class Free>
  bool trace(std::int32_t x, const std::vector<std::int32_t>& made, const ForReads& for_reads, const Free& free) {
    find_occurrences(x, made);
    bool valid = true;
    for_reads([&](std::int32_t step) {
      std::size_t at = occurrences_.size() - 1;
      while (occurrences_[at].from > step) --at;  // the first occurrence is made before any read
      valid = valid && occurrences_[at].last >= 0;
      occurrences_[at].last = std::max(occurrences_[at].last, step);
    });
    if (graph_.keep[x] != 0) {
      valid = valid && occurrences_.back().last >= 0;
      occurrences_.pop_back();
    }
    for (const Occurrence& occurrence : occurrences_) {
      if (occurrence.last < 0 || occurrence.evicted > 0) continue;
      valid = valid && (occurrence.fetched == 0 || occurrence.last >= occurrence.fetched);
      free(occurrence.last);
    }
    return valid;
  }

  /// Returns the values of the current row that have transfers, by their numbers in TablesView.
  const std::vector<std::int32_t>& values() const { return values_; }
  /// Ends the evaluation that begin() has begun, and returns `result`. Must be called before the next begin().
  bool end_values(bool result) {
    for (const std::int32_t x : values_) first_of_[x] = kNone;
    return result;
  }
  const device::MovedValue& value_of(const Copy& copy) const { return moves_.values[copy.value]; }

  /// Computes the makespan and the peak on the host, by moving the clocks from copy to copy. before[i] is the total
  /// cost of the steps before step i. Returns false if times could be too large for 64 bits.
  bool run_clocks(const std::int64_t* before, MovedOutcome& outcome) {
    std::int64_t total = before[row_.length];
    for (std::int32_t k = 0; k < row_.count; ++k) total = core::saturating_add(total, value_of(row_.copies[k]).time);
    if (total == INT64_MAX) return false;
    end_.resize(static_cast<std::size_t>(row_.count));
    finished_ = 0;
    wait_ = host_ = 0;
    std::int64_t links[2] = {0, 0}, fetched = 0;
    for (std::int32_t k = 0; k < row_.count; ++k) {
      const Copy& copy = row_.copies[k];
      finish_copies(copy.start, before);
      const bool fetch = (copy.kind & Copy::kFetch) != 0;
      std::int64_t& link = links[fetch && moves_.duplex ? 1 : 0];
      link = std::max(link, before[copy.start + 1] + wait_);
      if (fetch) link = std::max(link, end_[copy.from]);
      link += value_of(copy).time;
      end_[k] = link;
      if (fetch) {
        fetched = std::max(fetched, link);
      } else {
        host_ += value_of(copy).bytes;
        outcome.host_peak = std::max(outcome.host_peak, host_);
      }
    }
    finish_copies(row_.length - 1, before);
    outcome.cost = std::max(before[row_.length] + wait_, fetched);
    return true;
  }

 private:
  static constexpr std::int32_t kNone = -1, kOnHost = -1;

  /// An occurrence of a value: steps from `from` on read this occurrence, until the next occurrence begins.
  struct Occurrence {
    std::int32_t from = 0;
    std::int32_t last = 0;     ///< last step that reads it; kOnHost: from here on, the value is only on the host
    std::int32_t evicted = 0;  ///< `finish` of the evict that ends the occurrence; 0: none does
    std::int32_t fetched = 0;  ///< `finish` of the fetch that made the occurrence; 0: a step made it
  };

  template <bool kSingle>
  bool fails() const {
    const device::WalkArrays none;
    const device::TransferWalk<kSingle, Id> walk(graph_, moves_, row_, none);
    return walk.check_copies() != core::Defect::Kind::none;
  }

  /// Lists the occurrences of value x in the order of their first possible reads. An occurrence that a step makes can
  /// be read from the next step on; one that a fetch makes, from the fetch's `finish` on.
  void find_occurrences(std::int32_t x, const std::vector<std::int32_t>& made) {
    occurrences_.clear();
    std::int32_t place = first_of_[x];
    for (std::size_t i = 0; i < made.size() || place != kNone;) {
      if (i < made.size() && (place == kNone || made[i] < row_.copies[place].finish)) {
        occurrences_.push_back({made[i] + 1, made[i], evict_of(x, made[i]), 0});
        ++i;
        continue;
      }
      const Copy& copy = row_.copies[place];
      if ((copy.kind & Copy::kFetch) != 0) {
        occurrences_.push_back({copy.finish, copy.finish - 1, 0, copy.finish});
      } else if (occurrences_.back().evicted == copy.finish) {
        occurrences_.push_back({copy.finish, kOnHost, 0, 0});
      }
      place = next_[place];
    }
  }
  /// Returns the `finish` of the evict that copies the occurrence of x that step `made` makes, or 0 if nothing evicts
  /// this occurrence.
  std::int32_t evict_of(std::int32_t x, std::int32_t made) const {
    for (std::int32_t place = first_of_[x]; place != kNone; place = next_[place]) {
      const Copy& copy = row_.copies[place];
      if ((copy.kind & Copy::kFetch) == 0 && copy.from == made) return copy.finish;
    }
    return 0;
  }

  void finish_copies(std::int32_t step, const std::int64_t* before) {
    for (; finished_ < row_.count; ++finished_) {
      const std::int32_t place = row_.copies[finished_].by_finish;
      const Copy& copy = row_.copies[place];
      if (copy.finish > step) return;
      wait_ = std::max(wait_, end_[place] - before[copy.finish]);
      if ((copy.kind & Copy::kLastFetch) != 0) host_ -= value_of(copy).bytes;
    }
  }

  const device::TablesView<Id>& graph_;
  MovesView moves_;
  MovedRow<Id> row_;
  /// first_of_ is, for each value, its first copy in the order by `finish`. next_ is, for each copy, the next copy of
  /// the same value in that order.
  std::vector<std::int32_t> first_of_, next_;
  std::vector<std::int32_t> values_;
  std::vector<Occurrence> occurrences_;
  std::vector<std::int64_t> end_;  ///< for each copy, the time at which it is complete
  std::int32_t finished_ = 0;
  std::int64_t wait_ = 0;  ///< time so far in which no step ran
  std::int64_t host_ = 0;  ///< bytes on the host
};

}  // namespace
}  // namespace cairn::sim
