#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

/// These functions divide the items of several lists evenly among the threads of a team, even if the lists have very
/// different lengths.
namespace cairn::sim::device {

/// Sets before[i], for each i in [0, lists], to the number of items in the lists before list i. So before[lists] is the
/// number of all items. counts[i] must be the number of items in list i. The team must call sync() before and after.
template <class Team>
CAIRN_HD void count_before(const Team& team, const std::int32_t* counts, std::int32_t lists, std::int32_t* before) {
  for (std::int32_t list = team.rank(); list <= lists; list += team.size()) {
    std::int32_t sum = 0;
    CAIRN_UNROLL_BY(1)
    for (std::int32_t k = 0; k < list; ++k) sum += counts[k];
    before[list] = sum;
  }
}

/// Calls body(list, item) for each item of each list, once in the whole team. `before` is the result of count_before().
/// There are at most kMost lists, and kMost is a power of two.
template <std::int32_t kMost, class Team, class Body>
CAIRN_HD void for_each_item(const Team& team, const std::int32_t* before, std::int32_t lists, const Body& body) {
  const std::int32_t all = before[lists];
  CAIRN_UNROLL_BY(1)
  for (std::int32_t i = team.rank(); i < all; i += team.size()) {
    std::int32_t list = 0;  // becomes the last list with before[list] <= i
    CAIRN_UNROLL
    for (std::int32_t step = kMost / 2; step > 0; step /= 2) {
      if (list + step < lists && before[list + step] <= i) list += step;
    }
    body(list, i - before[list]);
  }
}

}  // namespace cairn::sim::device
