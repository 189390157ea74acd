#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "cairn/solvers/engines/linear_model.h"

namespace cairn::solvers {

/// A constraint program over whole numbers, which CP-SAT minimises. Each added part is encoded in the engine's format
/// at once. A literal is either a variable with domain 0..1 or its negation, which not_() makes.
class CpModel {
 public:
  using Variable = std::int32_t;
  using Literal = std::int32_t;
  using Interval = std::int32_t;
  static constexpr Literal not_(Literal literal) { return -literal - 1; }

  /// The expression `factor * variable + offset`. If `variable` is kNone, the expression is the constant `offset`.
  struct Affine {
    Variable variable = kNone;
    std::int64_t offset = 0, factor = 1;
    static constexpr Variable kNone = -1;
    constexpr Affine(Variable v, std::int64_t plus = 0, std::int64_t times = 1)
        : variable(v), offset(plus), factor(times) {}
    static constexpr Affine constant(std::int64_t value) { return {kNone, value}; }
  };

  Variable add_variable(std::int64_t lower, std::int64_t upper);
  /// Adds a variable whose domain is the list `values`, in ascending order.
  Variable add_variable(std::span<const std::int64_t> values);
  Literal add_literal() { return add_variable(0, 1); }
  std::int32_t variable_count() const { return variables_; }

  /// Requires lower <= sum of terms <= upper whenever all literals of `if_all` hold.
  void add_linear(std::span<const LinearTerm> terms, std::int64_t lower, std::int64_t upper,
                  std::span<const Literal> if_all = {});
  /// Requires that at least one of the literals holds whenever all literals of `if_all` hold.
  void add_or(std::span<const Literal> literals, std::span<const Literal> if_all = {});
  void add_implication(Literal if_this, Literal then_that) { add_or({{then_that}}, {{if_this}}); }
  void add_at_most_one(std::span<const Literal> literals);
  void add_all_different(std::span<const Affine> values);
  /// Adds the interval [start, end). It is present if the literal of `present` holds, or always if `present` is empty.
  /// `present` has at most one literal. For a present interval, start <= end and end - start = `size` are enforced.
  Interval add_interval(Affine start, Affine size, Affine end, std::span<const Literal> present = {});
  /// Requires that the demands of the present intervals never add up to more than `capacity` at any time.
  void add_cumulative(std::span<const Interval> intervals, std::span<const std::int64_t> demands, Affine capacity);
  void add_no_overlap(std::span<const Interval> intervals);
  struct Change {
    Affine time;
    std::int64_t by = 0;
    Literal active = 0;
  };
  /// Requires that the sum of the active changes never falls below `least`. At each time, the sum contains the changes
  /// up to and including that time. `least` must not be positive.
  void add_reservoir(std::span<const Change> changes, std::int64_t least);

  void minimize(std::span<const LinearTerm> terms);

  static constexpr std::int64_t kNoHint = std::numeric_limits<std::int64_t>::min();
  /// Returns the model as a CpModelProto message. `hint` has one entry for each variable. The entry is a value to try
  /// first, or kNoHint. The hint may be empty.
  std::string serialize(std::span<const std::int64_t> hint = {}) const;

 private:
  std::string variable_protos_, constraint_protos_, objective_proto_;
  std::int32_t variables_ = 0, constraints_ = 0;
};

/// Converts a linear program to a constraint program with the same variables. Throws std::logic_error if a variable has
/// an infinite bound.
CpModel cp_model_of(const LinearModel& model);

}  // namespace cairn::solvers
