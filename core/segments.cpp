// Divides profiles into segments, and merges the segments of parallel chains (dominance.h).

#include <algorithm>
#include <cstddef>
#include <queue>

#include "cairn/core/dominance.h"

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

}  // namespace cairn::core
