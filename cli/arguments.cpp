#include "cairn/cli/arguments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <ranges>
#include <utility>

#include "cairn/cli/output.h"
#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/core/threads.h"
#include "cairn/models/registry.h"
#include "cairn/pipeline/backend.h"
#include "cairn/solvers/decomposition/td_file.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::cli {
namespace {

/// Returns the help text of every option that at least one model has. If two models have different texts for an option,
/// the help text says that the meaning depends on the model.
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

constexpr std::string_view kStandard = "-";

/// Throws InputError if `path` cannot be written as a file.
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
  // For some files, such as those under /proc and those on broken drives, only an attempt to open the file shows
  // whether it can be written. A pipe is not opened, because opening it would wait for a reader.
  if (!fs::is_fifo(path, error)) core::FileWriter opened(path);
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a.empty() || b.empty() || a == kStandard || b == kStandard) return false;
  const auto canonical = [](fs::path path) {
    constexpr int kMostLinks = 40;  // largest number of links to follow, as in Linux
    std::error_code error;
    path = fs::absolute(path, error);
    // Follows links to files that do not exist yet, because weakly_canonical() does not follow such links.
    for (int links = 0; links < kMostLinks && fs::is_symlink(path, error) && !fs::exists(path, error); ++links)
      path = path.parent_path() / fs::read_symlink(path, error);
    return fs::weakly_canonical(path, error);
  };
  const fs::path first = canonical(a);
  return !first.empty() && first == canonical(b);
}

}  // namespace

const CLI::Validator& at_least_one() {
  static const CLI::Validator validator(
      [](std::string& text) -> std::string {
        std::int64_t value = 0;
        // A text that is not a number passes this check, because CLI11 itself reports it.
        if (!CLI::detail::lexical_cast(text, value) || value >= 1) return {};
        return fmt::format("{} must be at least 1", text);
      },
      "INT >= 1");
  return validator;
}

void add_time_limit(CLI::App& app, std::string& time_limit, const std::string& help) {
  app.add_option("-t,--time-limit", time_limit, help)->each([](const std::string& text) {
    try {
      limit_reading(core::parse_seconds(text));
    } catch (const core::InputError&) {
      // A text that is not a duration is ignored here. It is reported later, when the limit is used.
    }
  });
}

void add_threads(CLI::App& app, const std::string& of, const std::string& usual) {
  app.add_option_function<int>(
         "--threads", [](const int& threads) { core::set_thread_count(threads); },
         fmt::format("CPU threads {}; default{}", of,
                     usual.empty() ? fmt::format(" {}: the cores that this process may use", core::thread_count())
                                   : ": " + usual))
      ->check(CLI::Range(1, 4096));
}

void PrecisionChoice::add_to(CLI::App& app) {
  app.add_option("--precision", precision,
                 "fp32 (default); tf32 (products on CUDA round their factors); bf16 (tensors stored as bf16, sums in "
                 "fp32; CUDA)");
}

std::optional<core::Precision> PrecisionChoice::given() const {
  if (precision.empty()) return std::nullopt;
  return core::precision_from_string(precision);
}

core::Graph PrecisionChoice::stored(const pipeline::GraphSource& source, core::Graph graph) const {
  const std::optional<core::Precision> asked = given();
  if (!asked) return graph;
  core::Graph stored = source.stored_as(graph, *asked);
  pipeline::require_ops(stored, *asked);
  return stored;
}

void DeviceChoice::add_to(CLI::App& app, const std::string& use) {
  app.add_option("--backend", backend, "host, cuda or auto" + use)->capture_default_str();
  app.add_option("--device", device, "number of the GPU among the visible ones; absent: 0")->check(CLI::Range(0, 1023));
}

std::string DeviceChoice::name() const {
  if (device < 0) return backend;
  if (backend.find(':') != std::string::npos)
    throw core::InputError(fmt::format("--backend '{}' names a device already; drop --device {}", backend, device));
  return fmt::format("{}:{}", backend, device);
}

void BackendChoice::add_to(CLI::App& app) {
  DeviceChoice::add_to(app);
  PrecisionChoice::add_to(app);
}

void add_budget(CLI::App& app, std::string& budget, const std::string& help) {
  app.add_option("-b,--budget", budget, help)->check([](const std::string& text) -> std::string {
    return text.empty() ? "the budget is empty; give bytes, as 1.5GiB or 12345, or 80% of the baseline peak" : "";
  });
}

void AlignmentChoice::add_to(CLI::App& app) {
  app.add_option(
         "--alignment", given,
         "sizes and offsets of the plan are multiples of this many bytes; default: 256 if nodes have ops, else 1")
      ->check(at_least_one());
}

std::int64_t AlignmentChoice::of(const core::Graph& graph) const {
  return given > 0 ? given : fit::default_alignment(graph);
}

void StartArgument::add_to(CLI::App& app) {
  app.add_option("--start", path,
                 "schedule file from which the search starts; if it fits, the answer is at least as good");
}

std::unique_ptr<const core::ScheduleFile> StartArgument::load_into(solvers::SolveOptions& search,
                                                                   const solvers::SolverInfo& solver,
                                                                   const core::Graph& graph,
                                                                   std::string_view or_fingerprint) const {
  if (path.empty()) return nullptr;
  auto file =
      std::make_unique<const core::ScheduleFile>(core::load_schedule(path, graph, or_fingerprint, reading(path)));
  if (!file->schedule.transfers.empty() && !graph.host_memory())
    throw core::InputError(fmt::format("--start '{}' moves values to the host; give the --link for which it is", path));
  if (!search.scope.contains(graph, file->schedule))
    throw core::InputError(fmt::format("--start '{}' is not {}; drop --start, --order or --max-occurrences", path,
                                       solvers::describe(search.scope)));
  if (!solver.scope.contains(graph, file->schedule))
    throw core::InputError(
        fmt::format("--start '{}' is not {}, as --solver {} requires; drop --start, or try --solver auto", path,
                    solvers::describe(solver.scope), solver.name));
  search.start = &file->schedule;
  search.start_offsets = &file->offsets;
  return file;
}

void SearchAids::add_to(CLI::App& app) {
  app.add_option("--td", td, "PACE .td file: the tree decomposition of the graph that the solver is to use");
  device.add_to(app, ": the device that fills large tables of solvers");
}

NamedPath SearchAids::input() const { return {"--td", td}; }

OpenedAids SearchAids::open(const core::Graph& searched) const {
  OpenedAids opened;
  opened.accelerator = pipeline::open_accelerator(device.name());
  if (opened.accelerator) opened.simulator = pipeline::open_simulator(device.name(), searched);
  if (!td.empty())
    opened.decomposition = std::make_unique<solvers::TreeDecomposition>(solvers::parse_td(
        core::read_file(td, reading(td)), core::input_name(td), searched, {.stop = &catch_interrupt()}));
  return opened;
}

void OpenedAids::lend_to(solvers::SolveOptions& options) const {
  options.accelerator = accelerator.get();
  options.simulator = simulator.get();
  options.decomposition = decomposition.get();
}

namespace {
const core::Stopwatch process_watch{core::Limit{}};
}  // namespace

double seconds_since_start() { return process_watch.seconds(); }

core::Limit from_start(core::Limit limit) {
  limit.seconds = std::max(limit.seconds - seconds_since_start(), limit.seconds / 20);
  return limit;
}

core::Limit until_answer(core::Limit limit, const core::Graph& graph) {
  constexpr double kSecondsOfEdge = 6e-8, kMost = 0.2;
  const double answering = kSecondsOfEdge * static_cast<double>(graph.node_count() + graph.edge_count());
  limit.seconds -= std::min(answering, kMost * limit.seconds);
  return from_start(limit);
}

std::int64_t parse_size(std::string_view option, const std::string& text) {
  std::int64_t bytes = 0;
  const std::string fault = core::size_fault(text, bytes);
  if (fault.empty()) return bytes;
  throw core::InputError(
      fmt::format("{} '{}' {}; give bytes above 0 (2000000) or a size (8GiB, 500MB)", option, text, fault));
}

void GraphArguments::add_batch(CLI::App& app, const std::string& help, const std::string& group) {
  app.add_option_function<std::string>(
         "--batch",
         [this](const std::string& text) {
           batch_auto = text == "auto";
           std::int64_t value = 0;
           const core::NumberFault fault = batch_auto ? core::NumberFault::none : core::parse_whole(text, value);
           if (fault != core::NumberFault::none)
             throw core::InputError(
                 fmt::format("--batch {} is {}; give a number, or auto", text,
                             fault == core::NumberFault::too_large ? "too large" : "not a whole number"));
           if (!batch_auto) model_options["batch"] = value;
         },
         help + "; auto: the largest that fits into --device-memory or --budget")
      ->type_name("INT|auto")
      ->group(group);
}

void GraphArguments::add_to(CLI::App& app, const std::string& positional) {
  app.add_option(positional, name, positional == "GRAPH" ? "a graph file, or the name of a model" : "the model's name")
      ->required();
  app.add_flag("--forward", forward, "the forward part alone: inference, not training");
  app.add_flag("--unit-cost", unit_cost, "every node costs 1, whatever the graph says");
  const std::string group = "Options of models (see 'cairn models' for which takes which)";
  for (const auto& [option, help] : model_option_help()) {
    const std::string flag = "--" + option;
    if (app.get_option_no_throw(flag) != nullptr) continue;
    if (option == "batch") {
      add_batch(app, help, group);
      continue;
    }
    const auto add = [&](const std::string& spelling, const std::string& in_group) {
      app.add_option_function<std::int64_t>(
             spelling, [this, option = option](const std::int64_t& value) { model_options[option] = value; }, help)
          ->group(in_group);
    };
    add(flag, group);
    // Until version 0.2, the option is also accepted with _ in place of -. The old spelling has no group, so the help
    // does not show it.
    std::string old = option;
    std::replace(old.begin(), old.end(), '-', '_');
    if (old != option) add("--" + old, "");
  }
  if (app.get_option_no_throw("--repeat") == nullptr) {
    // --repeat was once the name of --depth-multiplier. Until version 0.2, --repeat is still recognized, but only to
    // tell the user the new name. It has no group, so the help does not show it.
    app.add_option_function<std::string>(
           "--repeat",
           [](const std::string& value) {
             throw core::InputError(fmt::format(
                 "--repeat is for the executions of 'run'; the depth of a model is --depth-multiplier {}", value));
           })
        ->group("");
  }
  app.add_option("--weight-grads", weight_grads, "where weight gradients live: arena or resident (default)")
      ->group(group);
  app.add_option(
         "--optimizer", optimizer,
         "sgd or adamw: the graph updates the weights, each as soon as its gradient is there; none, momentum or "
         "adam (default): only the bytes of the optimizer's state are counted as resident. With --granularity "
         "op, these three are parts of the graph, and the default is the one of the model's paper")
      ->group(group);
  app.add_option("--granularity", granularity,
                 "what a node is: layer (default), or op: the elementary operations of a framework without fusion, the "
                 "optimizer's among them. They have no kernels: 'run' makes their memory real, not their arithmetic")
      ->group(group);
}

pipeline::GraphSource GraphArguments::model() const {
  if (batch_auto) throw core::InputError("--batch auto is for info, solve and run; give a number");
  pipeline::GraphSource source;
  source.name = name;
  source.reading = reading(name);
  source.forward = forward;
  source.unit_cost = unit_cost;
  source.options.values = model_options;
  if (!weight_grads.empty()) {
    if (weight_grads != "arena" && weight_grads != "resident")
      throw core::InputError(fmt::format("--weight-grads '{}' must be 'arena' or 'resident'", weight_grads));
    source.options.weight_grads_in_arena = weight_grads == "arena";
  }
  source.options.optimizer = optimizer;
  if (!granularity.empty()) source.options.granularity = models::granularity_from_string(granularity);
  return source;
}

pipeline::GraphSource GraphArguments::source() const {
  const std::string option = !model_options.empty()  ? model_options.begin()->first
                             : !weight_grads.empty() ? "weight-grads"
                             : !optimizer.empty()    ? "optimizer"
                             : !granularity.empty()  ? "granularity"
                                                     : "";
  if (!option.empty() && pipeline::GraphSource{name, {}}.is_file())
    throw core::InputError(fmt::format("--{} is an option of models, but '{}' is a file; drop it", option, name));
  return model();
}

core::Graph GraphArguments::load() const {
  const pipeline::GraphSource from = source();
  return precision.stored(from, from.load({.stop = &catch_interrupt()}));
}

core::Graph GraphArguments::with_batch(std::int64_t batch) const {
  GraphArguments one = *this;
  one.batch_auto = false;
  one.model_options["batch"] = batch;
  const pipeline::GraphSource from = one.model();
  return precision.stored(from, from.build());
}

fit::Problem GraphArguments::problem(const std::string& budget, const AlignmentChoice& alignment) const {
  core::Graph graph = load();
  const std::int64_t bytes = alignment.of(graph);
  return fit::Problem(std::move(graph), budget, name, bytes);
}

NamedPath GraphArguments::input() const { return {"GRAPH", pipeline::GraphSource{name, {}}.is_model() ? "" : name}; }

void SolverArguments::add_to(CLI::App& app, const std::string& default_seconds) {
  default_seconds_ = default_seconds;
  const auto names = solvers::registry() | std::views::transform(&solvers::SolverInfo::name);
  solver_option_ =
      app.add_option("-s,--solver", solver, fmt::format("one of {}", fmt::join(names, ", ")))->capture_default_str();
  add_time_limit(
      app, time_limit,
      fmt::format("wall time of the command, reading included, as 10s, 500ms or 2m; default {}", default_seconds));
  app.add_option("--work-limit", work_limit,
                 "limit on the steps of the search; unlike a time limit, it gives the same result on every machine")
      ->check(at_least_one());
  add_threads(app, "of searches, simulation and kernels");
  app.add_option("--seed", seed, "seed of the solvers' random numbers")->capture_default_str();
  app.add_option("--memory", memory, "memory that tables and states of exact solvers may use, as 8GiB; default 2GiB");
  app.add_option("--order", order, "fixed (or input): nodes first run in the order of the file; free: in any")
      ->capture_default_str()
      ->check(CLI::IsMember({"free", "fixed", "input"}));
  app.add_option("--max-occurrences", max_occurrences, "how often a node may run; 1: no recomputation; absent: any")
      ->check(at_least_one());
  app.add_option("--option", own,
                 "option NAME=VALUE that only this solver has, as 'cairn solvers' lists them; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

const solvers::SolverInfo& SolverArguments::find() const { return solvers::find_solver(solver); }

bool SolverArguments::names_solver() const { return solver_option_->count() > 0; }
bool SolverArguments::narrows() const { return order != "free" || max_occurrences > 0 || !own.empty(); }

solvers::SolveOptions SolverArguments::options() const {
  solvers::SolveOptions options;
  options.seed = seed;
  options.limit.stop = &catch_interrupt();
  if (work_limit > 0) options.limit.work = work_limit;
  if (!memory.empty()) options.memory_bytes = parse_size("--memory", memory);
  if (!time_limit.empty()) {
    options.limit.seconds = core::parse_seconds(time_limit);
  } else if (work_limit == 0) {
    options.limit.seconds = core::parse_seconds(default_seconds_);
  }
  options.scope = {order != "free" ? solvers::OrderRule::input : solvers::OrderRule::free, max_occurrences};
  for (const std::string& assignment : own) {
    const std::string key = assignment.substr(0, assignment.find('='));
    if (options.own.contains(key))
      throw core::InputError(fmt::format("--option {} is given twice; give it one value", key));
    find().set_option(options, assignment);
  }
  return options;
}

namespace {

bool is_standard_output(std::string_view path) {
  return path == kStandard || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

/// Returns whether a command may write the file that it reads. It reads all of --start before it searches, and replaces
/// the file of -o at once, so the same command can improve a schedule again and again.
bool may_replace(const NamedPath& output, const NamedPath& input) {
  return output.option == "-o" && input.option == "--start";
}

}  // namespace

void require_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs) {
  std::string_view reader;
  for (const NamedPath& input : inputs) {
    if (input.path != kStandard) continue;
    if (!reader.empty())
      throw core::InputError(fmt::format(
          "{} and {} both are -, but standard input can be read once; give one of them a file", reader, input.option));
    reader = input.option;
  }
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    if (is_standard_output(output->path)) {
      std::string_view& writer = streams().stdout_option;
      if (streams().json)
        throw core::InputError(fmt::format("{} {} and --json both write to standard output; give {} a file",
                                           output->option, output->path, output->option));
      if (!writer.empty() && writer != output->option)
        throw core::InputError(
            fmt::format("{} and {} both write to standard output, which only one of them can; give one a file", writer,
                        output->option));
      writer = output->option;
      continue;
    }
    require_writable(output->path);
    for (const auto& input : inputs) {
      if (same_file(output->path, input.path) && !may_replace(*output, input))
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

void GraphOutputs::add_to(CLI::App& app) {
  app.add_option("-o,--output", json, "graph file to write (Cairn JSON)");
  app.add_option("--dot", dot, "Graphviz file to write");
  app.add_option("--gr", gr, "PACE .gr file to write: the undirected graph, for solvers of treewidth");
}

std::vector<NamedPath> GraphOutputs::paths() const { return {{"-o", json}, {"--dot", dot}, {"--gr", gr}}; }

void GraphOutputs::write(const core::Graph& graph) const {
  write_output(json, [&] { return core::graph_to_json(graph); });
  write_output(dot, [&] { return core::graph_to_dot(graph); });
  write_output(gr, [&] { return core::graph_to_gr(graph); });
}

std::string written_to(const std::string& path) {
  return path.empty() ? "nowhere (give -o g.json)" : core::output_name(path);
}

}  // namespace cairn::cli
