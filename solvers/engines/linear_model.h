#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace cairn::solvers {

struct LinearTerm {
  std::int32_t variable = 0;
  std::int64_t factor = 1;
};

/// A linear program with whole coefficients, to be minimised. Variables with Column::whole must take whole values.
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
};

/// A sum of terms and a constant. A model can use kZero and kOne instead of a variable whose value is known to be 0 or
/// 1.
struct LinearSum {
  static constexpr LinearModel::Variable kZero = -2, kOne = -1;

  std::vector<LinearTerm> terms;
  std::int64_t fixed = 0;

  void add(LinearModel::Variable entry, std::int64_t factor) {
    if (entry == kOne) fixed += factor;
    if (entry >= 0) terms.push_back({entry, factor});
  }
  void merge();
  /// Adds the row lower <= sum <= upper to the model. Each variable must have at most one term. If the sum has no
  /// terms, adds nothing and returns whether the constant is between the bounds. Otherwise returns true.
  bool add_row_to(LinearModel& model, std::int64_t lower, std::int64_t upper) const;
};

}  // namespace cairn::solvers
