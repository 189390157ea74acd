#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/engines/library.h"

namespace cairn::solvers {
namespace {

/// Declares the part of HiGHS's C interface (versions 1.7 to 1.12) that Cairn uses.
struct Highs {
  static constexpr int kOk = 0, kError = -1, kMinimize = 1, kRowwise = 2;
  static constexpr int kStatusOptimal = 7, kStatusInfeasible = 8, kStatusUnboundedOrInfeasible = 9;
  static constexpr int kFeasiblePoint = 2;
  enum Callback : std::uint8_t { kSimplexInterrupt = 1, kIpmInterrupt = 2, kImprovingSolution = 4, kMipInterrupt = 6 };
  struct DataOut;
  struct DataIn {
    int interrupt;  // HiGHS's struct begins with this member in all versions
  };
  using CallbackFunction = void (*)(int, const char*, const DataOut*, DataIn*, void*);

  Library library{"HiGHS", {"libhighs.so.1", "libhighs.so"}};
  void* (*create)() = library.find("Highs_create");
  void (*destroy)(void*) = library.find("Highs_destroy");
  int (*size_of_int)(const void*) = library.find("Highs_getSizeofHighsInt");
  int (*set_bool)(void*, const char*, int) = library.find("Highs_setBoolOptionValue");
  int (*set_int)(void*, const char*, int) = library.find("Highs_setIntOptionValue");
  int (*set_double)(void*, const char*, double) = library.find("Highs_setDoubleOptionValue");
  int (*pass)(void*, int, int, int, int, int, double, const double*, const double*, const double*, const double*,
              const double*, const int*, const int*, const double*, const int*) = library.find("Highs_passMip");
  int (*set_solution)(void*, int, const int*, const double*) = library.find("Highs_setSparseSolution");
  int (*set_callback)(void*, CallbackFunction, void*) = library.find("Highs_setCallback");
  int (*start_callback)(void*, int) = library.find("Highs_startCallback");
  const void* (*data_out_item)(const DataOut*, const char*) = library.find("Highs_getCallbackDataOutItem");
  int (*run)(void*) = library.find("Highs_run");
  int (*model_status)(const void*) = library.find("Highs_getModelStatus");
  int (*info_double)(const void*, const char*, double*) = library.find("Highs_getDoubleInfoValue");
  int (*info_int)(const void*, const char*, int*) = library.find("Highs_getIntInfoValue");
  int (*solution)(const void*, double*, double*, double*, double*) = library.find("Highs_getSolution");
};

Highs& highs() {
  static Highs opened;
  return opened;
}

/// Holds powers of two by which the rows, columns and costs of a program are scaled, so that no coefficient is larger
/// than kKept. Scaling is necessary because HiGHS's tolerances are absolute: they would be too small for large numbers.
struct Scales {
  explicit Scales(const LinearModel& model) : column(model.columns().size(), 1), row(model.rows().size(), 1) {
    for (std::size_t j = 0; j < column.size(); ++j) {
      const LinearModel::Column& x = model.columns()[j];
      if (!x.whole && x.upper < LinearModel::kInfinity && x.lower > -LinearModel::kInfinity)
        column[j] = power(std::max({std::abs(x.lower), std::abs(x.upper), std::int64_t{1}}));
      cost = std::max(cost, std::abs(static_cast<double>(x.cost)) * column[j]);
    }
    cost = 1 / power(cost);
    for (std::size_t i = 0; i < row.size(); ++i) {
      double largest = 1;
      for (const LinearTerm& term : model.terms(i))
        largest = std::max(largest, std::abs(static_cast<double>(term.factor)) * column[term.variable]);
      row[i] = 1 / power(largest);
    }
  }
  std::vector<double> column, row;  // x_j = column[j] * (scaled x_j); (scaled row i) = row[i] * (row i)
  double cost = 1;

 private:
  template <class Number>
  static double power(Number largest) {
    constexpr double kKept = 256;  // numbers up to this one are not scaled
    double scale = 1;
    while (static_cast<double>(largest) / scale > kKept) scale *= 2;
    return scale;
  }
};

class Run {
 public:
  Run(const LinearModel& model, const EngineOptions& options, bool relaxed)
      : model_(model), options_(options), relaxed_(relaxed), watch_(options.limit), scales_(model) {
    if (const std::string missing = highs_missing(); !missing.empty()) throw core::InputError(missing);
    highs_ = engine_.create();
    engine_.set_bool(highs_, "output_flag", 0);
    pass_model();
    set_options();
  }
  ~Run() { engine_.destroy(highs_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  EngineAnswer solve() {
    if (engine_.run(highs_) == Highs::kError && !watch_.passed()) throw std::runtime_error("HiGHS failed");
    EngineAnswer answer;
    const int status = engine_.model_status(highs_);
    answer.interrupted = watch_.interrupted();
    int point = 0, iterations = 0;
    engine_.info_int(highs_, "primal_solution_status", &point);
    engine_.info_int(highs_, "simplex_iteration_count", &iterations);
    answer.work = std::max(iterations, 1) * work_per_iteration();
    answer.tolerance = kTolerance;
    answer.bound = -std::numeric_limits<double>::infinity();
    if (status == Highs::kStatusInfeasible || status == Highs::kStatusUnboundedOrInfeasible) {
      answer.status = EngineStatus::infeasible;
      return answer;
    }
    if (!relaxed_ && engine_.info_double(highs_, "mip_dual_bound", &answer.bound) == Highs::kOk)
      answer.bound = answer.bound / scales_.cost - slack();
    if (point != Highs::kFeasiblePoint) return answer;
    if (relaxed_ && status != Highs::kStatusOptimal) return answer;
    answer.status = status == Highs::kStatusOptimal ? EngineStatus::optimal : EngineStatus::feasible;
    std::vector<double> values(model_.columns().size());
    engine_.solution(highs_, values.data(), nullptr, nullptr, nullptr);
    answer.values = original(values.data());
    answer.objective = objective(answer.values);
    if (relaxed_) answer.bound = answer.objective - slack();
    answer.best_seconds = relaxed_ ? watch_.seconds() : best_seconds_;
    return answer;
  }

 private:
  void pass_model() {
    const auto columns = model_.columns();
    const auto rows = model_.rows();
    const double inf = std::numeric_limits<double>::infinity();
    const auto scaled = [&](std::int64_t value, double scale) {
      if (value >= LinearModel::kInfinity) return inf;
      if (value <= -LinearModel::kInfinity) return -inf;
      return static_cast<double>(value) * scale;
    };
    std::vector<double> cost, lower, upper, row_lower, row_upper, factor;
    std::vector<int> begin, index, whole;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      cost.push_back(static_cast<double>(columns[j].cost) * scales_.column[j] * scales_.cost);
      lower.push_back(scaled(columns[j].lower, 1 / scales_.column[j]));
      upper.push_back(scaled(columns[j].upper, 1 / scales_.column[j]));
      whole.push_back(columns[j].whole && !relaxed_ ? 1 : 0);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      begin.push_back(static_cast<int>(index.size()));
      for (const LinearTerm& term : model_.terms(i)) {
        index.push_back(term.variable);
        factor.push_back(static_cast<double>(term.factor) * scales_.column[term.variable] * scales_.row[i]);
      }
      row_lower.push_back(scaled(rows[i].lower, scales_.row[i]));
      row_upper.push_back(scaled(rows[i].upper, scales_.row[i]));
    }
    const int passed = engine_.pass(highs_, static_cast<int>(columns.size()), static_cast<int>(rows.size()),
                                    static_cast<int>(index.size()), Highs::kRowwise, Highs::kMinimize, 0, cost.data(),
                                    lower.data(), upper.data(), row_lower.data(), row_upper.data(), begin.data(),
                                    index.data(), factor.data(), whole.data());
    if (passed == Highs::kError) throw std::runtime_error("HiGHS refuses a model");
  }

  void set_options() {
    engine_.set_int(highs_, "threads", 1);  // HiGHS searches serially; more threads would only make answers vary
    engine_.set_int(highs_, "random_seed", static_cast<int>(options_.seed & 0x3fffffff));
    engine_.set_double(highs_, "time_limit", std::clamp(options_.limit.seconds, 0.0, 1e9));
    engine_.set_double(highs_, "mip_rel_gap", 0);
    const bool whole_costs = std::all_of(model_.columns().begin(), model_.columns().end(),
                                         [](const LinearModel::Column& x) { return x.cost == 0 || x.whole; });
    engine_.set_double(highs_, "mip_abs_gap", whole_costs ? 0.99 * scales_.cost : 0);
    constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
    if (options_.limit.counts_work()) {
      const std::int64_t iterations = std::max<std::int64_t>(options_.limit.work / work_per_iteration(), 1);
      engine_.set_int(highs_, "simplex_iteration_limit", static_cast<int>(std::min(iterations, kMostInt)));
      engine_.set_int(highs_, "mip_max_nodes", static_cast<int>(std::min(iterations / 32 + 1, kMostInt)));
    }
    if (!relaxed_ && options_.hint.size() == model_.columns().size()) {
      std::vector<int> variables;
      std::vector<double> hint;
      for (std::size_t j = 0; j < options_.hint.size(); ++j) {
        if (options_.hint[j] == CpModel::kNoHint) continue;
        variables.push_back(static_cast<int>(j));
        hint.push_back(static_cast<double>(options_.hint[j]) / scales_.column[j]);
      }
      engine_.set_solution(highs_, static_cast<int>(hint.size()), variables.data(), hint.data());
    }
    engine_.set_callback(highs_, &called_back, this);
    for (const int kind : {Highs::kSimplexInterrupt, Highs::kIpmInterrupt, Highs::kMipInterrupt})
      engine_.start_callback(highs_, kind);
    if (!relaxed_) engine_.start_callback(highs_, Highs::kImprovingSolution);
  }

  static void called_back(int kind, const char*, const Highs::DataOut* out, Highs::DataIn* in, void* self) {
    Run& run = *static_cast<Run*>(self);
    if (kind != Highs::kImprovingSolution) {
      if (in != nullptr) {
        const bool stop = run.watch_.passed() || run.iterations_done(kind, out) || !run.go_on(kind, out);
        in->interrupt = stop ? 1 : 0;
      }
      return;
    }
    run.best_seconds_ = run.watch_.seconds();
    if (!run.options_.incumbent) return;
    const auto* scaled = static_cast<const double*>(run.engine_.data_out_item(out, "mip_solution"));
    if (scaled == nullptr) return;
    const std::vector<double> values = run.original(scaled);
    run.options_.incumbent(values, run.objective(values));
  }

  /// Returns whether the simplex iterations so far have used up the work limit. HiGHS's limit on nodes of its search
  /// tree does not suffice, because the first node can take any number of iterations.
  bool iterations_done(int kind, const Highs::DataOut* out) const {
    if (kind != Highs::kMipInterrupt || !options_.limit.counts_work()) return false;
    const auto* done = static_cast<const std::int64_t*>(engine_.data_out_item(out, "mip_total_lp_iterations"));
    return done != nullptr && *done > options_.limit.work / work_per_iteration();
  }

  bool go_on(int kind, const Highs::DataOut* out) const {
    if (kind != Highs::kMipInterrupt || !options_.progress) return true;
    const auto* scaled = static_cast<const double*>(engine_.data_out_item(out, "mip_dual_bound"));
    if (scaled == nullptr) return true;
    EngineAnswer now;
    now.tolerance = kTolerance;
    now.bound = *scaled / scales_.cost - slack();
    return options_.progress(now.whole_bound());
  }

  std::vector<double> original(const double* scaled) const {
    std::vector<double> values(model_.columns().size());
    for (std::size_t j = 0; j < values.size(); ++j) values[j] = scaled[j] * scales_.column[j];
    return values;
  }
  double objective(const std::vector<double>& values) const {
    double sum = 0;
    for (std::size_t j = 0; j < values.size(); ++j) {
      const LinearModel::Column& x = model_.columns()[j];
      sum += static_cast<double>(x.cost) * (x.whole && !relaxed_ ? std::round(values[j]) : values[j]);
    }
    return sum;
  }
  /// Returns the amount by which HiGHS's tolerances, which apply to the scaled program, can make a bound too high.
  double slack() const {
    constexpr double kReducedCost = 1e-7, kDifference = 1e-6;
    double sum = kDifference;
    for (std::size_t j = 0; j < model_.columns().size(); ++j) {
      const LinearModel::Column& x = model_.columns()[j];
      sum += kReducedCost * (static_cast<double>(x.upper) - static_cast<double>(x.lower)) / scales_.column[j];
    }
    return sum / scales_.cost;
  }
  static constexpr double kTolerance = 1e-6;  // relative error of bounds
  std::int64_t work_per_iteration() const { return static_cast<std::int64_t>(model_.rows().size() / 8 + 16); }

  Highs& engine_ = highs();
  const LinearModel& model_;
  const EngineOptions& options_;
  const bool relaxed_;
  core::Stopwatch watch_;
  Scales scales_;
  void* highs_ = nullptr;
  double best_seconds_ = 0;
};

}  // namespace

std::string highs_missing() {
  Highs& engine = highs();
  if (!engine.library.missing().empty()) return engine.library.missing();
  void* instance = engine.create();
  const int bytes = engine.size_of_int(instance);
  engine.destroy(instance);
  return bytes == 4 ? ""
                    : "the installed HiGHS counts in 64 bits; scripts/install_engines.sh installs one that does not";
}

EngineAnswer solve_milp(const LinearModel& model, const EngineOptions& options) {
  return Run(model, options, false).solve();
}

EngineAnswer solve_relaxation(const LinearModel& model, const EngineOptions& options) {
  return Run(model, options, true).solve();
}

}  // namespace cairn::solvers
