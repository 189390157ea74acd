#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace cairn::solvers {

struct LinearTerm {
  std::int32_t variable = 0;
  std::int64_t factor = 1;
  bool operator==(const LinearTerm&) const = default;
};

/// Represents a sum of terms and a constant. A model can use kZero instead of a variable whose value is known to be 0,
/// and kOne instead of one whose value is known to be 1.
struct LinearSum {
  static constexpr std::int32_t kZero = -2, kOne = -1;

  std::vector<LinearTerm> terms;
  std::int64_t fixed = 0;

  void add(std::int32_t entry, std::int64_t factor) {
    if (entry == kOne) fixed += factor;
    if (entry >= 0) terms.push_back({entry, factor});
  }
  /// Sorts the terms by variable, adds up the terms of each variable, and drops those that cancel out.
  void merge();
};

/// Builds a linear program with whole coefficients, whose objective an engine minimises. Variables with Column::whole
/// must take whole values.
class LinearModel {
 public:
  using Variable = std::int32_t;
  static constexpr std::int64_t kInfinity = std::numeric_limits<std::int64_t>::max() / 4;

  struct Column {
    std::int64_t lower = 0, upper = 1;
    std::int64_t cost = 0;
    bool whole = true;
  };
  struct Row {
    std::int64_t lower = -kInfinity, upper = kInfinity;
    std::size_t begin = 0;  ///< index of the row's first term; the row ends where the next one begins
  };

  Variable add(const Column& column);
  Variable add_binary(std::int64_t cost = 0) { return add({.cost = cost}); }
  /// Requires lower <= sum of terms <= upper. No variable may occur in two terms. -kInfinity and kInfinity mean that
  /// there is no bound on that side.
  void add_row(std::span<const LinearTerm> terms, std::int64_t lower, std::int64_t upper);
  /// Requires lower <= sum <= upper. Each variable must have at most one term. If the sum has no terms, adds no row,
  /// and infeasible() becomes true if the constant is not between the bounds.
  void add_sum(const LinearSum& sum, std::int64_t lower, std::int64_t upper);
  /// Returns whether some sum without terms is not between its bounds. If so, no values of the variables are a
  /// solution.
  bool infeasible() const { return infeasible_; }
  void fix(Variable variable, std::int64_t value) { columns_[variable].lower = columns_[variable].upper = value; }
  Column& column(Variable variable) { return columns_[variable]; }

  std::span<const Column> columns() const { return columns_; }
  std::span<const Row> rows() const { return rows_; }
  std::span<const LinearTerm> terms(std::size_t row) const {
    const std::size_t end = row + 1 < rows_.size() ? rows_[row + 1].begin : terms_.size();
    return {terms_.data() + rows_[row].begin, end - rows_[row].begin};
  }
  std::size_t term_count() const { return terms_.size(); }

 private:
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::vector<LinearTerm> terms_;
  bool infeasible_ = false;
};

}  // namespace cairn::solvers
