#include "cairn/cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>

#include "cairn/cli/fit.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/models/registry.h"

namespace cairn::cli {
namespace {

constexpr double kQuickSeconds = 5;

std::atomic<bool> interrupted{false};

extern "C" void on_interrupt(int signal) {
  interrupted.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const auto& model : models::registry()) names.push_back(model.name);
  return names;
}

bool is_model(std::string_view name) {
  const auto names = model_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Every option that some model has -> what it is, where the models agree on that.
std::map<std::string, std::string> model_option_help() {
  std::map<std::string, std::string> helps;
  for (const auto& model : models::registry()) {
    for (const auto& option : model.options) {
      const auto [known, added] = helps.emplace(option.name, option.help);
      if (!added && known->second != option.help) known->second = "depends on the model";
    }
  }
  return helps;
}

/// Throws InputError when `path` cannot be a file to write.
void require_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error))
    throw core::InputError(fmt::format("cannot write '{}': it is a folder; name a file", path));
  const fs::path parent = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error))
    throw core::InputError(
        fmt::format("cannot write '{}': there is no folder '{}'; create it first", path, parent.string()));
  if (access(parent.c_str(), W_OK) != 0)
    throw core::InputError(fmt::format("cannot write '{}': no permission in folder '{}'", path, parent.string()));
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  const auto canonical = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(path), error); };
  return canonical(a) == canonical(b);
}

}  // namespace

void Console::add_to(CLI::App& app) {
  app.add_flag("--json", json, "one JSON object on stdout, and nothing else there");
  app.add_flag("-q,--quiet", quiet, "print nothing but errors");
}

void Console::print(const Json& object, const std::string& table) const {
  if (json) {
    print_json(object);
  } else if (!quiet) {
    std::cout << table << std::flush;
  }
}

std::string format_table(const std::vector<std::vector<std::string>>& rows, bool header) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += row[c];
      if (c + 1 < row.size()) text += std::string(widths[c] - display_width(row[c]) + 2, ' ');
    }
    text += '\n';
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    append(rows[r]);
    if (r == 0 && header) {
      std::vector<std::string> rule;
      for (const std::size_t width : widths) rule.emplace_back(width, '-');
      append(rule);
    }
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) { return fmt::format("{} ({} bytes)", core::format_bytes(bytes), bytes); }

double increase_pct(std::int64_t value, std::int64_t base) {
  if (base == 0) return 0;
  return 100.0 * static_cast<double>(value - base) / static_cast<double>(base);
}

const CLI::Validator& at_least_one() {
  static const CLI::Validator validator(
      [](std::string& text) -> std::string {
        std::int64_t value = 0;
        // What is no number at all is for the option's own conversion to refuse.
        if (!CLI::detail::lexical_cast(text, value) || value >= 1) return {};
        return fmt::format("{} must be at least 1", text);
      },
      "INT >= 1");
  return validator;
}

void PrecisionChoice::add_to(CLI::App& app) {
  app.add_option("--precision", precision,
                 "fp32 (default); tf32 (products on CUDA round their factors); bf16 (tensors stored as bf16, sums in "
                 "fp32; CUDA)");
}

core::Precision PrecisionChoice::find(const core::Graph& graph) const {
  if (!precision.empty()) return core::precision_from_string(precision);
  return core::stores_bf16(graph) ? core::Precision::bf16 : core::Precision::fp32;
}

void BackendChoice::add_to(CLI::App& app) {
  app.add_option("--backend", backend, "host, cuda or auto")->capture_default_str();
  PrecisionChoice::add_to(app);
}

void add_budget(CLI::App& app, std::string& budget, const std::string& help) {
  app.add_option("-b,--budget", budget, help)->check([](const std::string& text) -> std::string {
    return text.empty() ? "the budget is empty; give bytes, as 1.5GiB or 12345, or 80% of the baseline peak" : "";
  });
}

void GraphSource::add_to(CLI::App& app, const std::string& positional) {
  app.add_option(positional, name, positional == "GRAPH" ? "a graph file, or the name of a model" : "the model's name")
      ->required();
  app.add_flag("--forward", forward, "the forward part alone: inference, not training");
  const std::string group = "Options of models (see 'cairn models' for which takes which)";
  for (const auto& [option, help] : model_option_help()) {
    const std::string flag = "--" + option;
    if (app.get_option_no_throw(flag) != nullptr) continue;
    app.add_option_function<std::int64_t>(
           flag, [this, option = option](const std::int64_t& value) { model_options[option] = value; }, help)
        ->group(group);
  }
  app.add_option("--weight-grads", weight_grads, "where weight gradients live: arena or resident (default)")
      ->group(group);
  app.add_option("--optimizer", optimizer, "its state is counted as resident: none, momentum or adam (default)")
      ->group(group);
}

core::Graph GraphSource::build() const {
  models::BuildOptions options;
  options.values = model_options;
  if (!weight_grads.empty()) {
    if (weight_grads != "arena" && weight_grads != "resident")
      throw core::InputError(fmt::format("--weight-grads '{}' must be 'arena' or 'resident'", weight_grads));
    options.weight_grads_in_arena = weight_grads == "arena";
  }
  if (!optimizer.empty()) options.optimizer = optimizer;
  const core::Graph model = models::build_model(name, options);
  return forward ? core::forward_part(model) : model;
}

core::Graph GraphSource::load() const {
  if (is_model()) return build();
  if (!std::filesystem::exists(name) && name.find_first_of("./\\") == std::string::npos)
    throw core::InputError(fmt::format("'{}' is neither a file nor a model{}; 'cairn models' lists the models", name,
                                       core::did_you_mean(name, model_names())));
  if (!model_options.empty() || !weight_grads.empty() || !optimizer.empty()) {
    const std::string option = !model_options.empty()  ? model_options.begin()->first
                               : !weight_grads.empty() ? "weight-grads"
                                                       : "optimizer";
    throw core::InputError(fmt::format("--{} is an option of models, but '{}' is a file; drop it", option, name));
  }
  const core::Graph graph = core::load_graph(name);
  return forward ? core::forward_part(graph) : graph;
}

NamedPath GraphSource::input() const { return {"GRAPH", is_model() ? "" : name}; }

core::Graph GraphSource::stored_as(const core::Graph& loaded, core::Precision precision) const {
  const core::Graph graph = core::with_precision(loaded, precision);
  const bool estimated = is_model() && precision != core::Precision::fp32;
  return estimated ? core::with_roofline_costs(graph, core::roofline_of(precision)) : graph;
}

bool GraphSource::is_model() const { return cli::is_model(name); }

Problem::Problem(const GraphSource& source, const std::string& budget_text)
    : Problem(source.load(), source.name, budget_text) {}

Problem::Problem(core::Graph graph_in, const std::string& fallback, const std::string& budget_text)
    : graph(std::move(graph_in)), name(graph.name().empty() ? fallback : graph.name()) {
  baseline = core::evaluate(graph, core::baseline_schedule(graph));
  lower_bound = core::peak_lower_bound(graph);
  if (!budget_text.empty()) budget = core::parse_budget(budget_text, baseline.peak);
}

Json Problem::describe() const {
  Json json;
  json["graph"] = name;
  json["fingerprint"] = graph.fingerprint();
  json["nodes"] = graph.node_count();
  json["edges"] = graph.edge_count();
  json["resident_bytes"] = graph.resident_bytes();
  json["budget_bytes"] = budget ? Json(*budget) : Json(nullptr);
  json["baseline_peak_bytes"] = baseline.peak;
  json["baseline_cost"] = baseline.cost;
  json["lower_bound_peak_bytes"] = lower_bound;
  return json;
}

Problem Problem::rounded_up(std::int64_t alignment) const {
  Problem rounded = *this;
  rounded.graph = core::align_sizes(graph, alignment);
  rounded.baseline = core::evaluate(rounded.graph, core::baseline_schedule(rounded.graph));
  rounded.lower_bound = core::peak_lower_bound(rounded.graph);
  if (rounded.lower_bound != lower_bound || rounded.baseline.peak != baseline.peak)
    rounded.rounding = fmt::format(" with sizes rounded up to --alignment {}", alignment);
  return rounded;
}

void Search::add_to(CLI::App& app, const std::string& default_seconds) {
  default_seconds_ = default_seconds;
  std::string names;
  for (const auto& info : solvers::registry()) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  solver_option_ = app.add_option("-s,--solver", solver, fmt::format("one of {}", names))->capture_default_str();
  app.add_option("-t,--time-limit", time_limit,
                 fmt::format("wall time of the search, as 10s, 500ms or 2m; default {}", default_seconds));
  app.add_option("--work-limit", work_limit, "steps of the search; unlike time, the same result on every machine")
      ->check(at_least_one());
  app.add_option("--seed", seed, "of solvers that draw random numbers")->capture_default_str();
  app.add_option("--memory", memory, "for tables and states of exact solvers, as 8GiB; default 2GiB");
}

const solvers::SolverInfo& Search::find() const { return solvers::find_solver(solver); }

namespace {

std::int64_t parse_memory(const std::string& text) {
  constexpr std::int64_t kNoBaseline = 0;  // a share of what?
  try {
    if (text.find('%') == std::string::npos) return core::parse_budget(text, kNoBaseline);
  } catch (const core::InputError&) {
  }
  throw core::InputError(fmt::format("--memory '{}' is no size; give bytes (2000000) or a size (8GiB, 500MB)", text));
}

}  // namespace

solvers::SolveOptions Search::options() const {
  solvers::SolveOptions options;
  options.seed = seed;
  options.limit.stop = &catch_interrupt();
  if (work_limit > 0) options.limit.work = work_limit;
  if (!memory.empty()) options.memory_bytes = parse_memory(memory);
  if (!time_limit.empty()) {
    options.limit.seconds = core::parse_seconds(time_limit);
  } else if (work_limit == 0) {
    options.limit.seconds = core::parse_seconds(default_seconds_);
  }
  return options;
}

bool CheckedSolution::within(std::optional<std::int64_t> budget) const { return meets(solution, budget); }

core::Evaluation require_sound(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution) {
  const core::Evaluation evaluation = core::evaluate(graph, solution.schedule);
  if (!evaluation.valid())
    throw Failure(kDefect, fmt::format("solver '{}' returned an invalid schedule: {}; please report this", solver,
                                       core::describe(graph, evaluation.defect)));
  if (evaluation.peak != solution.peak || evaluation.cost != solution.cost)
    throw Failure(kDefect,
                  fmt::format("solver '{}' reports peak {} and cost {}, but its schedule has {} and {}; please "
                              "report this",
                              solver, solution.peak, solution.cost, evaluation.peak, evaluation.cost));
  return evaluation;
}

CheckedSolution solve_checked(const solvers::SolverInfo& solver, const core::Graph& graph,
                              const solvers::SolveOptions& options) {
  CheckedSolution checked;
  const core::Stopwatch watch(options.limit);
  checked.solution = solver.solve(graph, options);
  checked.seconds = watch.seconds();
  if (checked.within(std::nullopt) || !checked.solution.schedule.steps.empty())
    checked.evaluation = require_sound(solver.name, graph, checked.solution);
  return checked;
}

std::int64_t least_feasible(const Problem& problem, const solvers::Solution& solution, const Search& search) {
  std::int64_t least = problem.baseline.peak;
  if (!solution.schedule.steps.empty()) least = std::min(least, solution.peak);
  if (solution.least_peak > 0) return std::min(least, solution.least_peak);
  if (problem.graph.node_count() == 0) return least;

  solvers::SolveOptions options = search.options();
  options.limit.seconds = std::min(options.limit.seconds, kQuickSeconds);
  const auto quick = solve_checked(solvers::find_solver("auto"), problem.graph, options);
  if (quick.within(std::nullopt)) least = std::min(least, quick.solution.peak);
  return least;
}

Failure infeasible_failure(const Problem& problem, const solvers::SolverInfo& solver, const solvers::Scope& scope,
                           std::int64_t least, Json details) {
  std::string among;
  if (scope == solvers::kWithoutRecomputation) {
    among = " without recomputation";
  } else if (scope != solvers::kAnySchedule) {
    among = fmt::format(" ({})", solvers::describe(scope));
  }
  return {kInfeasible,
          fmt::format("no schedule of '{}'{} fits into {} bytes{}: the lower bound is {} bytes; the least budget known "
                      "feasible is {} bytes{}",
                      problem.name, among, problem.budget.value_or(0), problem.rounding, problem.lower_bound, least,
                      solver.scope == solvers::kWithoutRecomputation ? "; --solver auto recomputes" : ""),
          std::move(details)};
}

Failure not_found_failure(const Problem& problem, std::int64_t least, Json details) {
  return {
      kNotFound,
      fmt::format("found no schedule of '{}' within {} bytes{}, and none is excluded (lower bound {} bytes); the least "
                  "budget known feasible is {} bytes; raise --budget or --time-limit, or try another --solver",
                  problem.name, problem.budget.value_or(0), problem.rounding, problem.lower_bound, least),
      std::move(details)};
}

std::string best_so_far(const Problem& problem, std::int64_t peak, const std::string& output) {
  const bool above = problem.budget && peak > *problem.budget;
  return fmt::format(
      "the best schedule so far has peak {} bytes{}{}{}", peak, problem.rounding,
      above ? fmt::format(", above the budget of {} bytes", *problem.budget) : "",
      output.empty() ? "; give -o s.json to have it written" : fmt::format(", and was written to '{}'", output));
}

ProgressLine::ProgressLine(const Console& console, const Problem& problem, double limit_seconds)
    : active_(stderr_is_terminal() && !console.quiet),
      baseline_peak_(problem.baseline.peak),
      baseline_cost_(problem.baseline.cost),
      limit_seconds_(limit_seconds) {}

ProgressLine::~ProgressLine() {
  if (shown_at_ >= 0) std::cerr << "\r\033[K" << std::flush;
}

std::function<void(const solvers::Progress&)> ProgressLine::callback() {
  if (!active_) return {};
  return [this](const solvers::Progress& progress) { show(progress); };
}

void ProgressLine::show(const solvers::Progress& progress) {
  constexpr int kWidth = 24;
  constexpr double kEvery = 0.1;
  if (shown_at_ >= 0 && progress.seconds - shown_at_ < kEvery) return;
  shown_at_ = progress.seconds;
  std::string bar;
  if (std::isfinite(limit_seconds_)) {
    const int filled = static_cast<int>(kWidth * std::clamp(progress.seconds / limit_seconds_, 0.0, 1.0));
    bar = fmt::format("[\033[32m{:#<{}}\033[0m{:.<{}}] ", "", filled, "", kWidth - filled);
  }
  std::cerr << fmt::format("\r{}{:.1f} s  best peak {} ({:+.1f}%)  cost {:+.1f}%\033[K", bar, progress.seconds,
                           core::format_bytes(progress.peak), increase_pct(progress.peak, baseline_peak_),
                           increase_pct(progress.cost, baseline_cost_))
            << std::flush;
}

const std::atomic<bool>& catch_interrupt() {
  static const bool installed = (std::signal(SIGINT, on_interrupt), true);
  (void)installed;
  return interrupted;
}

void require_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    require_writable(output->path);
    for (const auto& input : inputs) {
      if (same_file(output->path, input.path))
        throw core::InputError(fmt::format("{} '{}' would overwrite the file that {} reads; name another file",
                                           output->option, output->path, input.option));
    }
    const auto twin = std::find_if(outputs.begin(), output,
                                   [&](const NamedPath& other) { return same_file(output->path, other.path); });
    if (twin != output)
      throw core::InputError(fmt::format("{} and {} both write '{}'; give each a file of its own", twin->option,
                                         output->option, output->path));
  }
}

Ending current_ending() {
  const auto ending = [](int code, std::string message, Json details = Json::object()) {
    std::replace(message.begin(), message.end(), '\n', ' ');  // where it quotes input
    return Ending{code, std::move(message), std::move(details)};
  };
  try {
    throw;
  } catch (const Failure& failure) {
    return ending(failure.exit_code, failure.what(), failure.details);
  } catch (const core::InputError& error) {
    return ending(kBadInput, error.what());
  } catch (const core::DeviceError& error) {
    return ending(kDevice, error.what());
  } catch (const std::bad_alloc&) {
    return ending(kDevice, "out of memory; try a smaller graph or a smaller --batch");
  } catch (const std::exception& error) {
    return ending(kDefect, fmt::format("internal failure: {}; please report this", error.what()));
  }
}

void print_ending(int code, const std::string& message, bool json, Json details) {
  print_error(message);
  if (!json) return;
  details["error"] = message;
  details["exit_code"] = code;
  print_json(details);
}

void print_error(const std::string& message) {
  const bool colour = stderr_is_terminal() && std::getenv("NO_COLOR") == nullptr;
  std::cerr << (colour ? "cairn: \033[31merror:\033[0m " : "cairn: error: ") << message << std::endl;
}

void print_json(const Json& object) {
  std::cout << object.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void GraphOutputs::add_to(CLI::App& app) {
  app.add_option("-o,--output", json, "graph file to write (Cairn JSON)");
  app.add_option("--dot", dot, "Graphviz file to write");
}

std::vector<NamedPath> GraphOutputs::paths() const { return {{"-o", json}, {"--dot", dot}}; }

void GraphOutputs::write(const core::Graph& graph) const {
  if (!json.empty()) core::write_file(json, core::graph_to_json(graph));
  if (!dot.empty()) core::write_file(dot, core::graph_to_dot(graph));
}

}  // namespace cairn::cli
