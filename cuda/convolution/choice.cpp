#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/cuda/internal/conv_variants.h"

namespace cairn::cuda {
namespace {

/// Returns the variants that are worth their scratch, by ascending scratch. A variant (one implementation of the
/// convolution) is worth its scratch if it is more than kWorthIt times as fast as the previous variant in the result.
std::vector<ConvVariant> front(std::vector<ConvVariant> timed) {
  std::stable_sort(timed.begin(), timed.end(), [](const ConvVariant& a, const ConvVariant& b) {
    return std::pair(a.scratch, a.ms) < std::pair(b.scratch, b.ms);
  });
  std::vector<ConvVariant> kept;
  for (const ConvVariant& variant : timed) {
    if (kept.empty() || variant.ms * kWorthIt < kept.back().ms) kept.push_back(variant);
  }
  return kept;
}

/// Times cuDNN's engines (its implementations) for one shape, and chooses the variants of this shape.
class Search {
 public:
  Search(ConvTrials& trials, const ConvLimits& limits) : trials_(trials), limits_(limits) {}

  ConvVariants run() {
    try_engines(-1, limits_.small_workspace);
    try_engines(limits_.small_workspace, limits_.large_workspace);
    if (timed_.empty() && untimed_) return {{*untimed_}, 0};
    const bool engine_runs = std::any_of(timed_.begin(), timed_.end(), [](const ConvVariant& v) { return v.engine; });
    if (small_.empty() || !engine_runs) return {};
    ConvVariants found{front(timed_), 0};
    // `small_` holds im2col and the engines whose workspace is at most small_workspace bytes. Let s be the scratch of
    // the fastest variant of `small_`. The usual variant is the fastest of all variants that need at most s bytes. It
    // can be an engine that is not in `small_`: if im2col is the fastest variant of `small_`, s can be above
    // small_workspace, and an engine with a workspace between small_workspace and s can be faster than im2col.
    found.usual = found.within(front(small_).back().scratch);
    return found;
  }

 private:
  /// Times the engines whose workspace is larger than `above` and at most `limit` bytes. Ends when some variant takes
  /// at most limits_.near_ms milliseconds, or when limits_.most_trials or limits_.most_time is reached. Also times
  /// im2col once, after the first engine, unless this engine takes at most limits_.near_ms milliseconds.
  void try_engines(std::int64_t above, std::int64_t limit) {
    const auto end = std::chrono::steady_clock::now() + limits_.most_time;
    int tried = 0;
    for (std::size_t i = 0; i < trials_.engines(); ++i) {
      if (is_near() || tried >= limits_.most_trials) break;
      if (tried > 0 && std::chrono::steady_clock::now() > end) break;
      const std::optional<std::int64_t> workspace = trials_.workspace(i);
      if (!workspace || *workspace <= above || *workspace > limit) continue;
      const std::optional<double> ms = trials_.engine_ms(i);
      if (!ms) continue;
      ++tried;
      add({i, *workspace, *ms});
      if (!lowered_tried_ && !is_near()) add_lowered();
    }
  }

  void add_lowered() {
    lowered_tried_ = true;
    if (const ConvVariant lowered = trials_.lowered(); lowered.ms > 0) add(lowered);
  }

  /// Adds a variant to `timed_` and, if its scratch is small, to `small_`. A variant without a measured time becomes
  /// `untimed_` instead, which run() uses only if no variant has a time.
  void add(const ConvVariant& variant) {
    const bool small = !variant.engine || variant.scratch <= limits_.small_workspace;
    if (variant.ms > 0) {
      add_to(timed_, variant);
      if (small) add_to(small_, variant);
    } else if (small && !untimed_) {
      untimed_ = variant;
    }
  }

  /// Adds a variant to `variants`, unless these contain a variant v that needs no more scratch, and the added variant
  /// would be at most kWorthIt times as fast as v.
  static void add_to(std::vector<ConvVariant>& variants, const ConvVariant& variant) {
    const bool no_gain = std::any_of(variants.begin(), variants.end(), [&](const ConvVariant& v) {
      return v.scratch <= variant.scratch && v.ms <= variant.ms * kWorthIt;
    });
    if (!no_gain) variants.push_back(variant);
  }

  bool is_near() const {
    return std::any_of(timed_.begin(), timed_.end(), [&](const ConvVariant& v) { return v.ms <= limits_.near_ms; });
  }

  ConvTrials& trials_;
  const ConvLimits& limits_;
  std::vector<ConvVariant> timed_;
  std::vector<ConvVariant> small_;  ///< im2col, and the engines with at most small_workspace bytes, if they were timed
  std::optional<ConvVariant> untimed_;
  bool lowered_tried_ = false;
};

}  // namespace

std::size_t ConvVariants::within(std::int64_t scratch) const {
  std::size_t chosen = 0;
  while (chosen + 1 < all.size() && all[chosen + 1].scratch <= scratch) ++chosen;
  return chosen;
}

std::optional<std::int64_t> ConvVariants::workspace(std::optional<std::int64_t> scratch) const {
  if (all.empty()) return std::nullopt;
  const ConvVariant& chosen = all[scratch ? within(*scratch) : usual];
  return chosen.engine ? std::optional(chosen.scratch) : std::nullopt;
}

ConvVariants find_variants(ConvTrials& trials, const ConvLimits& limits) { return Search(trials, limits).run(); }

}  // namespace cairn::cuda
