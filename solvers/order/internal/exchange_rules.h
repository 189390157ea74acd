#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/order/internal/cut_problem.h"
#include "cairn/solvers/order/internal/exact.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Makes a CutProblem of the steps between two cuts, and shrinks the problem by rules that keep the least peak.
///
/// All rules follow from one exchange argument. Let M(X) be the memory after the steps of a cut X. Suppose that an
/// order which never exceeds T passes through X. Let X' be a cut that contains X, can be reached from X within T, and
/// has the least memory of all cuts between X and X'. Under these conditions, the steps of X' \ X can run right after
/// X, and the other steps after them in their old order. The reason is that M is submodular. So for every later cut Y
/// of the order, `M(Y + X') <= M(Y) + M(X') - M(Y & X') <= M(Y)`, where + is union and & is intersection. The same
/// holds backwards in time. These are the rules:
/// - A step that raises memory in total can run right before the first of its successors, if the rise of each successor
/// is at least the step's drop. The step is removed and becomes a `first` group of its successors (cut_problem.h). If
/// there is only one successor, the step's bytes are instead added to the successor's rise. On chains, this rule and
/// the next one produce the segments of Theorem 6.5.
/// - A step that lowers memory in total can run right after the last of its predecessors, if the drop of each
/// predecessor is at least the step's rise. The step becomes a `last` group of its predecessors.
/// - The last member of a `last` group to run is always a member that no other member follows. So the other members
/// leave the group. For `first` groups, the same holds for members that no other member precedes.
class ExchangeRules {
 public:
  /// Takes the steps in to \ from and applies the rules. O(passes * n * (n / 64 + groups)).
  ExchangeRules(const StepGraph& graph, const Cut& from, const Cut& to);

  std::int32_t words() const { return std::max(1, (static_cast<std::int32_t>(alive_.size()) + 63) / 64); }
  CutProblem forward() const { return problem(start_, rise_, drop_, before_, after_, first_, last_); }
  CutProblem backward() const { return problem(end(), drop_, rise_, after_, before_, last_, first_); }

  /// Turns an order of the problem's steps into an order of the graph's steps. Undoes the rules, beginning with the one
  /// applied last. O(n^2).
  std::vector<StepId> restore(std::span<const std::int32_t> order) const;

 private:
  struct Group {
    std::int64_t bytes = 0;
    std::vector<Word> members;
  };
  /// A step that a rule removed. It runs right before the first of its neighbours (`before`) or right after the last of
  /// them. Without neighbours, it runs at the very end or the very beginning.
  struct Removed {
    std::int32_t step = 0;
    bool before = false;
    std::vector<std::int32_t> neighbours;
  };

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
  /// For each step of the graph, its number in the problem; -1: the step is not in the problem.
  std::vector<std::int32_t> local_;
  std::int32_t words_ = 0;
  std::int64_t start_ = 0;
  std::vector<std::int64_t> rise_, drop_;
  std::vector<StepId> original_;     ///< for each step of the problem, its number in the graph
  std::vector<std::int32_t> alive_;  ///< remaining steps of the problem, in topological order
  std::vector<Removed> removed_;
  std::vector<std::int32_t> new_number_;
  BitRows before_, after_;
  std::vector<Group> first_, last_;
};

}  // namespace cairn::solvers
