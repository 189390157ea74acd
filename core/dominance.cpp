// Compares profiles by dominance (dominance.h). segments.cpp makes their canonical forms.

#include "cairn/core/dominance.h"

#include <algorithm>
#include <cstddef>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"

namespace cairn::core {
namespace {

/// Walks over the peaks and valleys of a canonical profile, from its lowest valley to one of its ends. The pointers in
/// Lemma 2.5 of Jin et al. meet the peaks and valleys in this order. On the way to the left, each segment is read
/// backwards, so its rise and its drop exchange their roles.
class Wing {
 public:
  Wing(const CanonicalView& profile, std::size_t lowest, std::int64_t value, bool rightwards)
      : segments_(profile.segments), value_(value), at_(lowest), rightwards_(rightwards) {}

  bool done() const { return rightwards_ ? at_ == segments_.size() : at_ == 0; }
  std::int64_t valley() const { return value_; }
  std::int64_t peak() const { return done() ? value_ : value_ + (rightwards_ ? next().rise : next().drop); }
  std::int64_t next_valley() const { return done() ? value_ : value_ + (rightwards_ ? 1 : -1) * next().change(); }
  void advance() {
    value_ = next_valley();
    if (rightwards_) {
      ++at_;
    } else {
      --at_;
    }
  }

 private:
  const Segment& next() const { return segments_[rightwards_ ? at_ : at_ - 1]; }

  std::span<const Segment> segments_;
  std::int64_t value_;
  std::size_t at_;
  bool rightwards_;
};

/// Walks over both profiles in one direction. Returns whether the two pointers in Lemma 2.5 of Jin et al. can be
/// advanced to the ends of the profiles so that the value of `a` is never above that of `b`. The pointer on `a` starts
/// at the lowest valley of `a`. The pointer on `b` starts at the highest peak of `b`, whose height is `top`. This peak
/// is next to the lowest valley of `b`, where the wing `b` starts, but it can be on the side over which this call does
/// not walk.
bool wing_dominates(Wing a, Wing b, std::int64_t top) {
  // If the highest peak is on this side, the pointer on b is already at that peak.
  if (!b.done() && b.peak() == top) b.advance();
  std::int64_t height = top;
  for (;;) {
    // Here a.valley() is the lowest value in the rest of a, and `height` is the highest value in the rest of b. So the
    // result is false if the next peak of a is above `height`, or if the valley of b is below a.valley().
    if (!a.done() && (b.done() || a.peak() > b.peak())) {
      if (a.peak() > height) return false;
      a.advance();
    } else {
      if (b.valley() < a.valley()) return false;
      if (b.done()) return true;
      height = b.peak();
      b.advance();
    }
  }
}

struct Extremes {
  std::size_t lowest = 0;  ///< number of segments before the lowest valley
  std::int64_t low = 0, high = 0;
};
Extremes extremes(const CanonicalView& profile) {
  Extremes found{0, profile.start, profile.start};
  std::int64_t value = profile.start;
  for (const Segment& segment : profile.segments) {
    found.high = std::max(found.high, value + segment.rise);
    value += segment.change();
    if (segment.negative()) {
      found.low = value;
      ++found.lowest;
    }
  }
  return found;
}

}  // namespace

bool dominates(const CanonicalView& a, const CanonicalView& b) {
  const Extremes in_a = extremes(a), in_b = extremes(b);
  if (in_a.low > in_b.low || in_a.high > in_b.high) return false;
  const auto wings = [&](bool rightwards) {
    return wing_dominates(Wing(a, in_a.lowest, in_a.low, rightwards), Wing(b, in_b.lowest, in_b.low, rightwards),
                          in_b.high);
  };
  return wings(false) && wings(true);
}

bool dominates(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const CanonicalProfile in_a = canonical(a), in_b = canonical(b);
  return dominates(CanonicalView(in_a), CanonicalView(in_b));
}

std::vector<std::int64_t> internal_profile(const Graph& graph, const Schedule& schedule) {
  if (schedule.steps.empty()) throw InputError("an empty schedule has no internal profile");
  std::vector<std::int64_t> entries;
  append_internal_profile(graph, Evaluator(graph).profile(schedule.steps), schedule.steps.back(), entries);
  return entries;
}

void append_internal_profile(const Graph& graph, std::span<const std::int64_t> whole, NodeId last,
                             std::vector<std::int64_t>& entries) {
  constexpr std::ptrdiff_t kBefore = 2;  // index in `whole` of the memory after the first step
  entries.insert(entries.end(), whole.begin() + kBefore, whole.end());
  for (const ValueId x : graph.outputs(last)) {
    if (!graph.value_kept(x)) entries.back() += graph.value_size(x);
  }
}

}  // namespace cairn::core
