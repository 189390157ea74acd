#include "cairn/core/dominance.h"

#include <algorithm>
#include <cstddef>
#include <queue>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"

namespace cairn::core {

void append_segment(std::vector<Segment>& segments, Segment next) {
  append_segment(segments, next, [](Segment& a, const Segment& b) { a = joined(a, b); });
}

std::int64_t CanonicalProfile::peak() const {
  std::int64_t highest = start, value = start;
  for (const Segment& segment : segments) {
    highest = std::max(highest, value + segment.rise);
    value += segment.change();
  }
  return highest;
}

std::int64_t CanonicalProfile::end() const {
  std::int64_t value = start;
  for (const Segment& segment : segments) value += segment.change();
  return value;
}

namespace {

/// Collects the records of a sequence of values. A value below all earlier values is a low record; a value above all
/// earlier values is a high record. If several low records follow each other without a high record between them, only
/// the last of them is kept. The same holds for high records.
class Records {
 public:
  Records(std::int64_t first, std::size_t most) : low_(first), high_(first) {
    values_.reserve(most);
    values_.push_back(first);
  }

  void meet(std::int64_t value) {
    if (value < low_) {
      if (values_.size() > 1 && values_.back() == low_) values_.pop_back();
      values_.push_back(low_ = value);
    } else if (value > high_) {
      if (values_.size() > 1 && values_.back() == high_) values_.pop_back();
      values_.push_back(high_ = value);
    }
  }
  /// Returns the kept values. Low and high records alternate.
  const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::int64_t low_, high_;
  std::vector<std::int64_t> values_;
};

}  // namespace

CanonicalProfile canonical(std::span<const std::int64_t> profile) {
  // The canonical form consists of segments: each rises from a valley to a peak and drops to the next valley
  // (dominance.h). Suppose that a walk goes from either end of the profile to its lowest valley. Each peak of the
  // canonical form on this way is higher than all values met before, and each valley is lower than all values met
  // before. So the peaks and valleys are records, which the class Records collects.
  const auto lowest = static_cast<std::size_t>(std::min_element(profile.begin(), profile.end()) - profile.begin());
  Records left(profile.front(), lowest + 1), right(profile.back(), profile.size() - lowest);
  for (std::size_t i = 0; i <= lowest; ++i) left.meet(profile[i]);
  for (std::size_t i = profile.size(); i-- > lowest;) right.meet(profile[i]);

  CanonicalProfile result{profile.front(), {}};
  result.segments.reserve((left.values().size() + right.values().size()) / 2 + 1);
  std::int64_t valley = profile.front();
  const std::vector<std::int64_t>& falling = left.values();
  for (std::size_t i = 1; i < falling.size();) {
    const std::int64_t peak = falling[i] > valley ? falling[i++] : valley;
    result.segments.push_back({peak - valley, peak - falling[i]});
    valley = falling[i++];
  }
  const std::vector<std::int64_t>& rising = right.values();
  std::size_t left_over = rising.size();
  // If the last record equals `valley`, it is the lowest valley. The walk from the left has already ended there, so the
  // record is left out.
  if (rising.back() == valley && left_over > 1) --left_over;
  if (left_over == 1 && rising.front() == valley) {
    // Nothing rises after the lowest valley. Entries that follow it at the same height still form a segment.
    if (lowest + 1 < profile.size()) result.segments.push_back({0, 0});
    return result;
  }
  while (left_over > 0) {
    const std::int64_t peak = rising[--left_over];
    const std::int64_t next = left_over > 0 ? rising[--left_over] : peak;
    result.segments.push_back({peak - valley, peak - next});
    valley = next;
  }
  return result;
}

std::vector<PlacedSegment> place_segments(std::span<const std::int64_t> profile) {
  std::vector<PlacedSegment> segments;
  for (std::int64_t i = 1; i < static_cast<std::int64_t>(profile.size()); ++i) {
    const std::int64_t change = profile[i] - profile[i - 1];
    const Segment step{std::max<std::int64_t>(change, 0), std::max<std::int64_t>(-change, 0)};
    append_segment(segments, {step, i - 1, 0, i}, [](PlacedSegment& a, const PlacedSegment& b) {
      static_cast<Segment&>(a) = joined(a, b);
      a.end = b.end;
    });
  }
  // Several entries of a segment can be equally high. By Definition 6.2 of Jin et al., the segment's peak is the first
  // of them if the segment is to the left of the lowest valley, else the last.
  for (PlacedSegment& segment : segments) {
    const std::int64_t height = profile[segment.begin] + segment.rise;
    segment.peak = segment.negative() ? segment.begin : segment.end;
    while (profile[segment.peak] != height) segment.peak += segment.negative() ? 1 : -1;
  }
  return segments;
}

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

std::vector<Segment> merge_segments(std::span<const std::vector<Segment>> parts) {
  struct Head {
    std::size_t part, index;
  };
  const auto segment = [&](const Head& head) -> const Segment& { return parts[head.part][head.index]; };
  const auto later = [&](const Head& a, const Head& b) {
    if (sorts_before(segment(a), segment(b))) return false;
    return sorts_before(segment(b), segment(a)) || a.part > b.part;
  };
  std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (!parts[part].empty()) heads.push({part, 0});
  }
  std::vector<Segment> merged;
  while (!heads.empty()) {
    Head head = heads.top();
    heads.pop();
    append_segment(merged, segment(head));
    if (++head.index < parts[head.part].size()) heads.push(head);
  }
  return merged;
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
