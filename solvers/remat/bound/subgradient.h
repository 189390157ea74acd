#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

namespace cairn::solvers {

/// Holds the points of a search for the maximum of a concave function by subgradient steps.
struct Ascent {
  std::vector<double> point;  ///< the current point
  std::vector<double> best_point;
  double best = 0;  ///< value of the function at best_point
};

/// Maximises a concave function by at most `rounds` subgradient steps, and stores the best point in `ascent`.
/// evaluate(gradient) returns the value of the function at ascent.point, and sets `gradient` to a subgradient at this
/// point. All coordinates stay >= 0. If there are further constraints, project() moves ascent.point to a point that
/// meets them. The function returns early when the value reaches `target` or the watch expires. The length of a step
/// follows Polyak (1969), as if the maximum were `target`. Each step charges the watch `work` units.
template <class Evaluate, class Project>
void ascend(Ascent& ascent, double target, int rounds, std::int64_t work, core::Stopwatch& watch,
            const Evaluate& evaluate, const Project& project) {
  constexpr int kPatience = 20;
  constexpr double kShorter = 0.7;
  double step = 1;
  int stagnation = 0;
  double longest = 0;  // longest time of a round so far, in seconds
  std::vector<double> gradient;
  std::vector<double>& point = ascent.point;
  point = ascent.best_point;
  for (int round = 0; round < rounds; ++round) {
    // Leave enough time for one more exact evaluation, which takes about as long as two steps.
    const double before = watch.seconds();
    if (watch.charge(work).expired_now() || watch.rest().seconds < 4 * longest) break;
    double value = evaluate(gradient);
    longest = std::max(longest, watch.seconds() - before);
    if (value > ascent.best) {
      ascent.best = value;
      ascent.best_point = point;
      stagnation = 0;
      if (ascent.best >= target) break;
    } else if (++stagnation == kPatience) {
      stagnation = 0;
      step *= kShorter;
      point = ascent.best_point;
      value = evaluate(gradient);
    }
    double norm = 0;
    for (std::size_t k = 0; k < point.size(); ++k) {
      if (point[k] <= 0 && gradient[k] < 0) gradient[k] = 0;
      norm += gradient[k] * gradient[k];
    }
    if (norm == 0) break;
    const double length = step * (target - value) / norm;
    for (std::size_t k = 0; k < point.size(); ++k) point[k] = std::max(0.0, point[k] + length * gradient[k]);
    project();
  }
}

}  // namespace cairn::solvers
