#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/tests/core/order_cases.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes sets of profiles for tests of functions that compare many profiles at once. A profile a dominates a
/// profile b if two pointers can go from their beginnings to their ends such that the value of a is never above that of
/// b (Definition 2.3 of Jin et al.).
namespace cairn::tests {

/// Several profiles, concatenated into one array. Profile i is the part from offsets[i] to offsets[i + 1].
struct Ragged {
  std::vector<std::int64_t> values, offsets{0};

  explicit Ragged(const std::vector<Values>& profiles) {
    for (const Values& profile : profiles) {
      values.insert(values.end(), profile.begin(), profile.end());
      offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
  }
};

inline sim::CanonicalBatch canonical_one_by_one(const std::vector<Values>& profiles) {
  sim::CanonicalBatch batch;
  for (const Values& profile : profiles) batch.add(core::canonical(profile));
  return batch;
}

/// Returns random profiles. Many of them dominate an earlier profile or are dominated by one. Some differ from an
/// earlier profile only in parts that dominance ignores.
inline std::vector<Values> population(Random& random, std::int64_t count, std::int64_t max_length) {
  std::vector<Values> profiles;
  while (static_cast<std::int64_t>(profiles.size()) < count) {
    Values next = random_values(random, max_length);
    if (!profiles.empty() && random.chance(75)) {
      const Values& other = random.pick(profiles);
      switch (random.below(4)) {
        case 0:
          next = near_dominated(random, other);
          break;
        case 1:
          next = near_values(random, other);
          break;
        case 2: {  // a longer profile, which dominance does not distinguish from the old one
          next = other;
          const auto place = random.below(static_cast<std::int64_t>(next.size()));
          next.insert(next.begin() + place, next[static_cast<std::size_t>(place)]);
          break;
        }
        default:
          next = other;
          for (std::int64_t& value : next) value -= random.between(0, 1);
      }
    }
    profiles.push_back(std::move(next));
  }
  return profiles;
}

/// The entry [i][j] says whether profile i dominates profile j, by Definition 2.3 of Jin et al.
using Matrix = std::vector<std::vector<bool>>;

inline Matrix literal_matrix(const std::vector<Values>& profiles) {
  Matrix matrix(profiles.size(), std::vector<bool>(profiles.size()));
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    for (std::size_t j = 0; j < profiles.size(); ++j) {
      matrix[i][j] = core::reference::dominates_by_pointers(profiles[i], profiles[j]);
    }
  }
  return matrix;
}

/// Returns the profiles that no other profile dominates, by comparing all pairs. Of several equal profiles, it returns
/// the first.
inline std::vector<std::int64_t> literal_non_dominated(const Matrix& dominates) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < dominates.size(); ++i) {
    bool stays = true;
    for (std::size_t j = 0; j < dominates.size(); ++j) {
      if (j != i && dominates[j][i] && (!dominates[i][j] || j < i)) stays = false;
    }
    if (stays) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

}  // namespace cairn::tests
