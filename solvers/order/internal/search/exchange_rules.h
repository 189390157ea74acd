#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/order/internal/reduction/cut_problem.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"
#include "cairn/solvers/order/internal/search/exact.h"

namespace cairn::solvers {

/// Makes a CutProblem of the steps between two topological cuts, and shrinks it by rules that keep the least peak.
///
/// All rules follow from one exchange argument. Let M(X) be the memory after the steps of a cut X have run. Suppose
/// that an order whose peak is at most T passes through X. Let X' be a larger cut that can be reached from X with a
/// peak of at most T, and assume that no cut between X and X' has less memory than X'. The order can be changed so that
/// the steps of X' that are not in X run right after X, and all other steps follow in their old order. The peak is
/// still at most T, because M is submodular: for every later cut Y of the old order, `M(Y + X') <= M(Y) + M(X') - M(Y &
/// X') <= M(Y)`, where + is union and & is intersection. The last step holds because Y & X' is a cut between X and X',
/// so it has no less memory than X'. The same argument holds backwards in time. These are the rules:
/// - Suppose that a step is in no `last` group and adds `rise - drop` >= 0 bytes in total, and that each of its
/// successors has a `rise` of at least the `drop` of the step. Such a step can run right before the first of its
/// successors. So it is removed, and its successors get a `first` group (cut_problem.h) with the bytes `rise - drop`:
/// the first of them to run allocates these bytes. On chains, this rule and the next rule give the segments of Theorem
/// 6.5 of Jin et al.
/// - Suppose that a step is in no `first` group and frees `drop - rise` >= 0 bytes in total, and that each of its
/// predecessors has a `drop` of at least the `rise` of the step. Such a step can run right after the last of its
/// predecessors. So it is removed, and its predecessors get a `last` group with the bytes `drop - rise`: the last of
/// them to run frees these bytes.
/// - A step leaves a `last` group if another step of the group must run after it, because it can never be the last of
/// the group to run. A step leaves a `first` group if another step of the group must run before it.
/// - A group of a single step is removed. Its bytes are added to the step's rise (`first` group) or drop (`last`
/// group).
class ExchangeRules {
 public:
  /// Makes the problem of the steps in `to` that are not in `from`, and applies the rules as long as one applies. Takes
  /// O(p n (n / 64 + g)) time for n steps, g groups and p passes over the steps.
  ExchangeRules(const StepGraph& graph, const Cut& from, const Cut& to);

  std::int32_t words() const { return std::max(1, (static_cast<std::int32_t>(alive_.size()) + 63) / 64); }
  CutProblem forward() const { return problem(start_, rise_, drop_, before_, after_, first_, last_); }
  CutProblem backward() const { return problem(end(), drop_, rise_, after_, before_, last_, first_); }

  /// Turns an order of the problem's steps into an order of the graph's steps by inserting the removed steps, the last
  /// removed one first. O(n^2) for n steps.
  std::vector<StepId> restore(std::span<const std::int32_t> order) const;

 private:
  struct Group {
    std::int64_t bytes = 0;
    std::vector<Word> members;
  };
  /// Describes a step that a rule removed. If `before` is true, the neighbours are the step's successors, and the step
  /// runs right before the first of them or, if there are none, at the end. Otherwise the neighbours are the step's
  /// predecessors, and the step runs right after the last of them or, if there are none, at the beginning.
  struct Removed {
    std::int32_t step = 0;
    bool before = false;
    std::vector<std::int32_t> neighbours;
  };

  /// Largest number of steps for which the rules are applied.
  static constexpr std::int32_t kMostReduced = kMostExactSteps;

  void number();
  void relate();
  void include(BitRows& rows, std::int32_t i, std::int32_t j);
  void collect_groups();
  bool pass();
  bool tidy(std::vector<Group>& groups, const BitRows& beyond, std::vector<std::int64_t>& own);
  static bool in_any(const std::vector<Group>& groups, std::int32_t i);
  bool run_before_successors(std::int32_t i);
  bool run_after_predecessors(std::int32_t i);
  static bool covered(std::int64_t bytes, const std::vector<std::int32_t>& neighbours,
                      const std::vector<std::int64_t>& heights);
  void become_group(std::int32_t i, std::int64_t bytes, const std::vector<std::int32_t>& neighbours,
                    std::vector<Group>& groups);
  std::vector<std::int32_t> covers(std::int32_t i, const BitRows& rows) const;
  static void merge_equal(std::vector<Group>& groups);
  void renumber();

  std::int32_t count() const { return static_cast<std::int32_t>(original_.size()); }
  std::int64_t end() const;
  CutProblem problem(std::int64_t start, const std::vector<std::int64_t>& rise, const std::vector<std::int64_t>& drop,
                     const BitRows& before, const BitRows& after, const std::vector<Group>& first,
                     const std::vector<Group>& last) const;
  Groups groups(const CutProblem& p, const std::vector<Group>& from) const;

  const StepGraph& graph_;
  const Cut& from_;
  const Cut& to_;
  /// For each step of the graph, its number in the problem or -1.
  std::vector<std::int32_t> local_;
  std::int32_t words_ = 0;
  std::int64_t start_ = 0;
  std::vector<std::int64_t> rise_, drop_;
  std::vector<StepId> original_;     ///< for each step of the problem, its number in the graph
  std::vector<std::int32_t> alive_;  ///< remaining steps of the problem, in topological order
  std::vector<Removed> removed_;
  std::vector<std::int32_t> new_number_;
  BitRows before_, after_;  ///< for each step, all steps that must run before it, and all that must run after it
  std::vector<Group> first_, last_;
};

}  // namespace cairn::solvers
