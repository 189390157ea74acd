#include "cairn/solvers/engines/cp_model.h"

#include "cairn/solvers/engines/wire_format.h"

namespace cairn::solvers {
namespace {

/// Lists field numbers of cp_model.proto. The comment on each line names the messages that have these fields.
namespace model_field {
constexpr int kVariables = 2, kConstraints = 3, kObjective = 4, kHint = 6;                  // CpModelProto
constexpr int kVariableDomain = 2;                                                          // variable
constexpr int kEnforcement = 2, kOr = 3, kLinear = 12, kAllDifferent = 13, kInterval = 19;  // constraint
constexpr int kCumulative = 22;                                                             // constraint
constexpr int kTermVariables = 1, kTermFactors = 2, kLinearDomain = 3, kOffset = 3;         // linear, affine
constexpr int kFirst = 1, kStart = 4, kEnd = 5, kSize = 6;                                  // lists; interval
constexpr int kCapacity = 1, kIntervals = 2, kDemands = 3;                                  // cumulative
constexpr int kObjectiveFactors = 4;                                                        // objective
}  // namespace model_field

using Affine = CpModel::Affine;

MessageWriter affine_message(const Affine& value) {
  MessageWriter message;
  if (value.variable != Affine::kNone) {
    message.list<std::int32_t>(model_field::kTermVariables, {{value.variable}});
    message.list<std::int64_t>(model_field::kTermFactors, {{value.factor}});
  }
  if (value.offset != 0) message.whole(model_field::kOffset, value.offset);
  return message;
}

void write_terms(MessageWriter& message, std::span<const LinearTerm> terms, int factors) {
  std::vector<std::int32_t> variables;
  std::vector<std::int64_t> values;
  for (const LinearTerm& term : terms) {
    variables.push_back(term.variable);
    values.push_back(term.factor);
  }
  message.list<std::int32_t>(model_field::kTermVariables, variables);
  message.list<std::int64_t>(factors, values);
}

MessageWriter list_of(std::span<const std::int32_t> entries) {
  MessageWriter list;
  list.list<std::int32_t>(model_field::kFirst, entries);
  return list;
}

}  // namespace

CpModel::Variable CpModel::add_domain(std::span<const std::int64_t> ends) {
  MessageWriter variable, entry;
  variable.list<std::int64_t>(model_field::kVariableDomain, ends);
  entry.message(model_field::kVariables, variable);
  variable_protos_ += entry.str();
  return variables_++;
}

std::int32_t CpModel::add_constraint(int kind, const MessageWriter& constraint, std::span<const Literal> if_all) {
  MessageWriter message, entry;
  message.list<std::int32_t>(model_field::kEnforcement, if_all);
  message.message(kind, constraint);
  entry.message(model_field::kConstraints, message);
  constraint_protos_ += entry.str();
  return constraints_++;
}

CpModel::Variable CpModel::add_variable(std::int64_t lower, std::int64_t upper) { return add_domain({{lower, upper}}); }

CpModel::Variable CpModel::add_variable(std::span<const std::int64_t> values) {
  std::vector<std::int64_t> domain;
  for (const std::int64_t value : values) {
    if (!domain.empty() && domain.back() + 1 == value) {
      domain.back() = value;
    } else {
      domain.insert(domain.end(), {value, value});
    }
  }
  return add_domain(domain);
}

void CpModel::add_linear(std::span<const LinearTerm> terms, std::int64_t lower, std::int64_t upper,
                         std::span<const Literal> if_all) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  MessageWriter linear;
  write_terms(linear, terms, model_field::kTermFactors);
  linear.list<std::int64_t>(model_field::kLinearDomain, {{lower <= -LinearModel::kInfinity ? kLeast : lower,
                                                          upper >= LinearModel::kInfinity ? kMost : upper}});
  add_constraint(model_field::kLinear, linear, if_all);
}

void CpModel::add_or(std::span<const Literal> literals, std::span<const Literal> if_all) {
  add_constraint(model_field::kOr, list_of(literals), if_all);
}

void CpModel::add_all_different(std::span<const Affine> values) {
  MessageWriter list;
  for (const Affine& value : values) list.message(model_field::kFirst, affine_message(value));
  add_constraint(model_field::kAllDifferent, list);
}

CpModel::Interval CpModel::add_interval(Affine start, Affine size, Affine end, std::span<const Literal> present) {
  MessageWriter interval;
  interval.message(model_field::kStart, affine_message(start));
  interval.message(model_field::kEnd, affine_message(end));
  interval.message(model_field::kSize, affine_message(size));
  // In addition to the interval, CP-SAT requires a linear constraint start + size = end, unless it is trivially true.
  std::vector<LinearTerm> terms;
  const auto add = [&](const Affine& value, std::int64_t sign) {
    if (value.variable == Affine::kNone) return;
    const std::int64_t factor = sign * value.factor;
    for (LinearTerm& term : terms) {
      if (term.variable == value.variable) {
        term.factor += factor;
        return;
      }
    }
    terms.push_back({value.variable, factor});
  };
  add(start, 1);
  add(size, 1);
  add(end, -1);
  std::erase_if(terms, [](const LinearTerm& term) { return term.factor == 0; });
  const std::int64_t right = end.offset - start.offset - size.offset;
  if (!terms.empty() || right != 0) add_linear(terms, right, right, present);
  if (size.variable != Affine::kNone)
    add_linear({{{size.variable, size.factor}}}, -size.offset, LinearModel::kInfinity, present);
  return add_constraint(model_field::kInterval, interval, present);
}

void CpModel::add_cumulative(std::span<const Interval> intervals, std::span<const std::int64_t> demands,
                             Affine capacity) {
  MessageWriter cumulative;
  cumulative.message(model_field::kCapacity, affine_message(capacity));
  cumulative.list<std::int32_t>(model_field::kIntervals, intervals);
  for (const std::int64_t demand : demands)
    cumulative.message(model_field::kDemands, affine_message(Affine::constant(demand)));
  add_constraint(model_field::kCumulative, cumulative);
}

void CpModel::minimize(std::span<const LinearTerm> terms) {
  MessageWriter objective;
  write_terms(objective, terms, model_field::kObjectiveFactors);
  objective_proto_ = objective.str();
}

std::string CpModel::serialize(std::span<const std::int64_t> hint) const {
  MessageWriter tail;
  if (!objective_proto_.empty()) tail.bytes(model_field::kObjective, objective_proto_);
  if (!hint.empty()) {
    std::vector<std::int32_t> variables;
    std::vector<std::int64_t> values;
    for (std::size_t j = 0; j < hint.size(); ++j) {
      if (hint[j] == kNoHint) continue;
      variables.push_back(static_cast<std::int32_t>(j));
      values.push_back(hint[j]);
    }
    MessageWriter assignment;
    assignment.list<std::int32_t>(1, variables);
    assignment.list<std::int64_t>(2, values);
    tail.message(model_field::kHint, assignment);
  }
  return variable_protos_ + constraint_protos_ + tail.str();
}

}  // namespace cairn::solvers
