#include "cairn/solvers/engines/linear_model.h"

#include <algorithm>
#include <stdexcept>

namespace cairn::solvers {

LinearModel::Variable LinearModel::add(const Column& column) {
  columns_.push_back(column);
  return static_cast<Variable>(columns_.size()) - 1;
}

void LinearModel::add_row(std::span<const LinearTerm> terms, std::int64_t lower, std::int64_t upper) {
  if (terms_.size() + terms.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::length_error("a linear program of more than 2^31 terms");
  rows_.push_back({lower, upper, terms_.size()});
  terms_.insert(terms_.end(), terms.begin(), terms.end());
}

void LinearModel::add_sum(const LinearSum& sum, std::int64_t lower, std::int64_t upper) {
  if (lower > -kInfinity) lower -= sum.fixed;
  if (upper < kInfinity) upper -= sum.fixed;
  if (sum.terms.empty()) {
    infeasible_ = infeasible_ || lower > 0 || upper < 0;
  } else {
    add_row(sum.terms, lower, upper);
  }
}

void LinearSum::merge() {
  std::ranges::sort(terms, {}, &LinearTerm::variable);
  std::size_t size = 0;
  for (std::size_t i = 0; i < terms.size();) {
    LinearTerm merged{terms[i].variable, 0};
    for (; i < terms.size() && terms[i].variable == merged.variable; ++i) merged.factor += terms[i].factor;
    if (merged.factor != 0) terms[size++] = merged;
  }
  terms.resize(size);
}

}  // namespace cairn::solvers
