#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "cairn/solvers/engines/linear_model.h"

namespace cairn::solvers {

class MessageWriter;

/// Builds a constraint program over whole numbers, whose objective CP-SAT minimises. Variables and constraints are
/// stored in the engine's format as they are added. A literal is a variable with the domain 0..1 or its negation,
/// not_(). The literal holds if its value is 1.
class CpModel {
 public:
  using Variable = std::int32_t;
  using Literal = std::int32_t;
  using Interval = std::int32_t;
  static constexpr Literal not_(Literal literal) { return -literal - 1; }

  /// Describes the expression `factor * variable + offset`. If `variable` is kNone, the expression is the constant
  /// `offset`.
  struct Affine {
    Variable variable = kNone;
    std::int64_t offset = 0, factor = 1;
    static constexpr Variable kNone = -1;
    constexpr Affine(Variable v, std::int64_t plus = 0, std::int64_t times = 1)
        : variable(v), offset(plus), factor(times) {}
    static constexpr Affine constant(std::int64_t value) { return {kNone, value}; }
  };

  Variable add_variable(std::int64_t lower, std::int64_t upper);
  /// Adds a variable with the domain `values`, which is in ascending order.
  Variable add_variable(std::span<const std::int64_t> values);
  Literal add_literal() { return add_variable(0, 1); }
  std::int32_t variable_count() const { return variables_; }

  void add_linear(std::span<const LinearTerm> terms, std::int64_t lower, std::int64_t upper,
                  std::span<const Literal> if_all = {});
  /// Requires that at least one of the literals holds whenever all literals of `if_all` hold.
  void add_or(std::span<const Literal> literals, std::span<const Literal> if_all = {});
  void add_implication(Literal if_this, Literal then_that) { add_or({{then_that}}, {{if_this}}); }
  void add_all_different(std::span<const Affine> values);
  /// Adds the interval [start, end), for which `size >= 0` and `start + size = end` are required. If `present` has a
  /// literal, the interval is present, and the requirements apply, only if this literal holds. `present` has at most
  /// one literal.
  Interval add_interval(Affine start, Affine size, Affine end, std::span<const Literal> present = {});
  /// Requires at every time that the demands of the present intervals that contain this time add up to at most
  /// `capacity`.
  void add_cumulative(std::span<const Interval> intervals, std::span<const std::int64_t> demands, Affine capacity);

  void minimize(std::span<const LinearTerm> terms);

  static constexpr std::int64_t kNoHint = std::numeric_limits<std::int64_t>::min();
  /// Returns the model as a CpModelProto message. `hint` is either empty or has one entry per variable: a value to try
  /// first, or kNoHint.
  std::string serialize(std::span<const std::int64_t> hint = {}) const;

 private:
  /// Adds a variable whose domain is a union of closed ranges. `ends` has the two ends of each range, ascending.
  Variable add_domain(std::span<const std::int64_t> ends);
  /// Adds a constraint and returns its number. `kind` is the number of the field that holds this kind of constraint.
  std::int32_t add_constraint(int kind, const MessageWriter& constraint, std::span<const Literal> if_all = {});

  std::string variable_protos_, constraint_protos_, objective_proto_;
  std::int32_t variables_ = 0, constraints_ = 0;
};

}  // namespace cairn::solvers
