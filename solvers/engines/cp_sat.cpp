#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <thread>

#include "cairn/core/error.h"
#include "cairn/core/threads.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/engines/library.h"
#include "cairn/solvers/engines/wire_format.h"

namespace cairn::solvers {
namespace {

/// Lists field numbers of two messages: SatParameters (first two lines) and CpSolverResponse (last line).
namespace field {
constexpr int kSeed = 31, kSeconds = 36, kLog = 41, kDeterministicSeconds = 67, kCatchInterrupts = 135;
constexpr int kLogToStdout = 186, kLogToResponse = 187, kWorkers = 206;
constexpr int kStatus = 1, kSolution = 2, kObjective = 3, kBound = 4, kDeterministicTime = 17, kSolveLog = 26;
}  // namespace field
enum ResponseStatus : std::uint8_t { kUnknown = 0, kInvalid = 1, kFeasible = 2, kInfeasible = 3, kOptimal = 4 };

struct CpSat {
  Library library{"OR-Tools (CP-SAT)", {"libortools.so.9", "libortools.so"}};
  void* (*create)() = library.find("SolveCpNewEnv");
  void (*destroy)(void*) = library.find("SolveCpDestroyEnv");
  void (*stop)(void*) = library.find("SolveCpStopSearch");
  void (*solve)(void*, const void*, int, const void*, int, void**, int*) = library.find("SolveCpInterruptible");
};

CpSat& cp_sat() {
  static CpSat opened;
  return opened;
}

/// Returns a thread that stops a search when the limit's stop flag is set. The thread polls the flag, because CP-SAT
/// cannot be told to watch a flag of the caller.
std::jthread watcher(const core::Limit& limit, void* search) {
  if (limit.stop == nullptr) return {};
  return std::jthread([limit, search](const std::stop_token& done) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    while (!done.stop_requested()) {
      if (limit.interrupted()) cp_sat().stop(search);
      wake.wait_for(lock, done, std::chrono::milliseconds(20), [] { return false; });
    }
  });
}

/// Returns the time in seconds of the last solution in the engine's log, or 0 if there is none. The line of a solution
/// looks like "#3 0.52s best:12 next:[..]".
double last_solution_seconds(std::string_view log) {
  double seconds = 0;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (line.size() < 3 || line[0] != '#' || line[1] < '0' || line[1] > '9') continue;
    const std::size_t space = line.find(' ');
    const std::size_t number = space == std::string_view::npos ? space : line.find_first_not_of(' ', space);
    if (number == std::string_view::npos || line.find("best:") == std::string_view::npos) continue;
    std::from_chars(line.data() + number, line.data() + line.size(), seconds);
  }
  return seconds;
}

std::string parameters_of(const EngineOptions& options) {
  MessageWriter parameters;
  const bool counted = options.limit.counts_work();
  const int threads = options.threads > 0 ? options.threads : core::thread_count();
  parameters.whole(field::kWorkers, counted ? 1 : threads);
  parameters.whole(field::kSeed, static_cast<std::int64_t>(options.seed & 0x3fffffff));
  if (std::isfinite(options.limit.seconds)) parameters.real(field::kSeconds, std::max(options.limit.seconds, 0.0));
  if (counted) {
    const double work = std::max(static_cast<double>(options.limit.work), 0.0);
    parameters.real(field::kDeterministicSeconds, work / kEngineWorkPerSecond);
  }
  parameters.whole(field::kCatchInterrupts, 0);
  parameters.whole(field::kLog, 1);
  parameters.whole(field::kLogToStdout, 0);
  parameters.whole(field::kLogToResponse, 1);
  return parameters.str();
}

EngineAnswer read_response(std::string_view bytes) {
  EngineAnswer answer;
  std::int64_t status = kUnknown;
  answer.bound = -std::numeric_limits<double>::infinity();
  MessageReader response(bytes);
  double seconds = 0, bound = 0;
  while (response.next()) {
    switch (response.field()) {
      case field::kStatus:
        status = response.whole();
        break;
      case field::kSolution:
        MessageReader::for_each_packed(
            response.bytes(), [&](std::int64_t value) { answer.values.push_back(static_cast<double>(value)); });
        break;
      case field::kObjective:
        answer.objective = std::round(response.real());  // whole, but CP-SAT's scaling adds rounding errors
        break;
      case field::kBound:
        bound = std::round(response.real());
        break;
      case field::kDeterministicTime:
        seconds = response.real();
        break;
      case field::kSolveLog:
        answer.best_seconds = last_solution_seconds(response.bytes());
        break;
      default:
        break;
    }
  }
  if (status == kInvalid)
    throw core::InputError("CP-SAT refuses the program: sizes or costs add up to more than it takes");
  answer.work = static_cast<std::int64_t>(seconds * kEngineWorkPerSecond) + 1;
  if (status == kInfeasible) answer.status = EngineStatus::infeasible;
  if (status == kFeasible) answer.status = EngineStatus::feasible;
  if (status == kOptimal) answer.status = EngineStatus::optimal;
  if (status != kInfeasible) answer.bound = bound;
  // The bound is a double, which cannot represent all whole numbers above 2^53. So a large bound may be rounded, and
  // gets a tolerance.
  if (std::abs(bound) > 0x1p53) answer.tolerance = 0x1p-52;
  return answer;
}

}  // namespace

std::string cp_sat_missing() { return cp_sat().library.missing(); }

EngineAnswer solve_cp(const CpModel& model, const EngineOptions& options) {
  if (const std::string missing = cp_sat_missing(); !missing.empty()) throw core::InputError(missing);
  if (static_cast<std::int32_t>(options.hint.size()) != model.variable_count() && !options.hint.empty())
    throw std::logic_error("the hint and the model have different lengths");
  const std::string request = model.serialize(options.hint), parameters = parameters_of(options);
  if (request.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw core::InputError("the constraint program is larger than CP-SAT reads (2 GiB)");
  CpSat& engine = cp_sat();
  void* search = engine.create();
  void* response = nullptr;
  int length = 0;
  {
    const std::jthread watching = watcher(options.limit, search);
    engine.solve(search, request.data(), static_cast<int>(request.size()), parameters.data(),
                 static_cast<int>(parameters.size()), &response, &length);
  }
  engine.destroy(search);
  const std::string bytes(static_cast<const char*>(response), static_cast<std::size_t>(length));
  std::free(response);
  EngineAnswer answer = read_response(bytes);
  answer.interrupted = options.limit.interrupted();
  if (answer.solved() && options.incumbent) options.incumbent(answer.values, answer.objective);
  return answer;
}

EngineAnswer solve_cp(const LinearModel& model, const EngineOptions& options) {
  CpModel cp;
  std::vector<LinearTerm> objective;
  for (const LinearModel::Column& column : model.columns()) {
    if (column.lower <= -LinearModel::kInfinity || column.upper >= LinearModel::kInfinity)
      throw std::logic_error("a variable without a bound in a constraint program");
    const CpModel::Variable variable = cp.add_variable(column.lower, column.upper);
    if (column.cost != 0) objective.push_back({variable, column.cost});
  }
  for (std::size_t row = 0; row < model.rows().size(); ++row)
    cp.add_linear(model.terms(row), model.rows()[row].lower, model.rows()[row].upper);
  cp.minimize(objective);
  return solve_cp(cp, options);
}

std::int64_t EngineAnswer::whole(std::int32_t variable) const { return std::llround(values[variable]); }

std::int64_t EngineAnswer::whole_bound() const {
  if (!(bound > -1e18)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(std::ceil(bound - tolerance * std::max(std::abs(bound), 1.0)));
}

}  // namespace cairn::solvers
