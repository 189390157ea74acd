#include "cairn/solvers/engines/internal/linear_model.h"

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

}  // namespace cairn::solvers
