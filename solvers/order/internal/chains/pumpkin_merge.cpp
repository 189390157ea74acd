// Runs the dynamic program for parallel chains, called branches (pumpkin_merge.h). Branches with equal memory profiles
// are of one kind. A state is a multiset of branches that are to be merged into one chain. The key of a branch is its
// first step; its other steps are its rest.

#include "cairn/solvers/order/internal/chains/pumpkin_merge.h"

#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "cairn/solvers/common/support/accelerator.h"

namespace cairn::solvers {

PumpkinMerge::PumpkinMerge(std::span<const PumpkinBranch> branches, std::int64_t released) : branches_(branches) {
  const auto profile = [&](const PumpkinBranch& branch) {
    std::vector<std::int64_t> words{branch.key.rise, branch.key.drop};
    for (const ChainSegment& piece : branch.rest) words.insert(words.end(), {piece.rise, piece.drop});
    return words;
  };
  problem_.released = released;
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(branches.size()); ++b) {
    const auto [found, is_new] = known.emplace(profile(branches[b]), branches_of_kind_.size());
    if (is_new) {
      problem_.kinds.push_back({branches[b].key, {branches[b].rest.begin(), branches[b].rest.end()}, 0});
      branches_of_kind_.emplace_back();
    }
    ++problem_.kinds[found->second].copies;
    branches_of_kind_[found->second].push_back(b);
  }
  const std::vector<std::int64_t> states = count_states(problem_);
  states_ = std::accumulate(states.begin(), states.end(), std::int64_t{0});
  needed_bytes_ = most_bytes(problem_);
}

PumpkinAnswer::End PumpkinMerge::solve(core::Stopwatch& watch, const std::function<void()>& tick, std::int64_t chunk,
                                       const Solve& solve) {
  PumpkinOptions options;
  options.chunk = chunk;
  options.go_on = [&](std::int64_t work) {
    if (watch.charge(work).expired()) return false;
    if (tick) tick();
    return true;
  };
  PumpkinAnswer answer = solve(problem_, options);
  order_ = std::move(answer.order);
  return answer.end;
}

bool PumpkinMerge::solve(core::Stopwatch& watch, int threads, const std::function<void()>& tick) {
  constexpr std::int64_t kWorthSharing = 4096;  // tables of fewer states are solved by one thread
  constexpr std::int64_t kChunk = 2048;         // number of states solved between two checks of the limit
  const core::HostMachine machine(states_ < kWorthSharing ? 1 : threads);
  return solve(watch, tick, kChunk, [&](const auto& problem, const auto& options) {
           return solve_pumpkin(machine, problem, options);
         }) == PumpkinAnswer::End::solved;
}

PumpkinAnswer::End PumpkinMerge::solve_on(Accelerator& device, core::Stopwatch& watch,
                                          const std::function<void()>& tick) {
  return solve(watch, tick, PumpkinOptions{}.chunk,
               [&](const auto& problem, const auto& options) { return device.pumpkin(problem, options); });
}

Chain PumpkinMerge::chain(Ropes& ropes) const {
  // Builds the chain backwards, from the last branch to the first. Each round merges the steps after a branch's key
  // with the chain of all later branches, and puts the key before the result.
  std::vector<std::size_t> unused;
  for (const auto& equal : branches_of_kind_) unused.push_back(equal.size());
  Chain result;
  for (auto kind = order_.rbegin(); kind != order_.rend(); ++kind) {
    const PumpkinBranch& branch = branches_[branches_of_kind_[*kind][--unused[*kind]]];
    ChainSegment key = branch.key;
    if (kind == order_.rbegin()) key.drop += problem_.released;
    Chain longer;
    append(longer, key, ropes);
    std::vector<Chain> parts;
    parts.push_back(std::move(result));
    parts.push_back(branch.rest);
    append(longer, merge(std::move(parts), ropes), ropes);
    result = std::move(longer);
  }
  return result;
}

}  // namespace cairn::solvers
