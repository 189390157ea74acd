#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/sum_limit.h"
#include "cairn/core/support/text.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::cli {
namespace {

struct PlanArguments {
  Console console;
  GraphArguments source;
  std::string schedule, buffers, capacity, hints, time_limit, output, csv, report;
  std::vector<std::string> banks, forbidden;
  std::int64_t alignment = 1;
  bool minimize = false;

  solvers::PlanOptions options() const {
    solvers::PlanOptions options;
    options.alignment = alignment;
    if (!time_limit.empty()) options.limit = {.seconds = core::parse_seconds(time_limit)};
    options.limit.stop = &catch_interrupt();
    return options;
  }
};

// --- the addresses that buffers may use ------------------------------------------------------------------------------

/// Describes the addresses that buffers may use: all addresses below `capacity` (if given) that are not forbidden.
struct Space {
  std::optional<std::int64_t> capacity;
  std::vector<core::AddressRange> forbidden;
};

core::AddressRange parse_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto address = [](const std::string& part) { return part == "0" ? 0 : parse_size("--forbid", part); };
  try {
    if (colon != std::string::npos) {
      const core::AddressRange range{address(text.substr(0, colon)), address(text.substr(colon + 1))};
      if (range.lower < range.upper && range.upper <= core::kSumLimit) return range;
    }
  } catch (const core::InputError&) {
  }
  throw core::InputError(
      fmt::format("--forbid '{}' is not a range of addresses up to 2^62; give where it begins and, after ':', ends, as "
                  "4096:8192 or 0:64KiB",
                  text));
}

Space parse_space(const PlanArguments& arguments) {
  Space space;
  for (const std::string& range : arguments.forbidden) space.forbidden.push_back(parse_range(range));
  if (!arguments.capacity.empty()) space.capacity = parse_size("--capacity", arguments.capacity);
  if (arguments.banks.empty()) return space;
  if (space.capacity) throw core::InputError("--capacity is the sum of the banks; drop it, or the banks");
  // The banks are placed one after another. An empty forbidden range at each boundary keeps buffers from crossing it.
  std::int64_t end = 0;
  for (const std::string& text : arguments.banks) {
    const std::int64_t bank = parse_size("--bank", text);
    if (bank > core::kSumLimit - end)
      throw core::InputError(fmt::format("the banks up to '{}' have more than 2^62 bytes", text));
    if (end > 0) space.forbidden.push_back({end, end});
    end += bank;
  }
  space.capacity = end;
  return space;
}

/// Sets the hint of each buffer to the offset that the buffer of the same id has in the plan of the file `path`.
void take_hints(std::vector<core::BufferSpec>& specs, const std::string& path) {
  std::unordered_map<std::string, std::int64_t> offsets;
  for (const core::BufferSpec& spec : core::load_minimalloc_csv(path, reading(path))) {
    if (spec.offset) offsets.emplace(spec.id, *spec.offset);
  }
  if (offsets.empty())
    throw core::InputError(
        fmt::format("{}: no buffer has an offset to take as a hint; give a plan, as 'cairn plan -o' writes it", path));
  for (core::BufferSpec& spec : specs) {
    if (const auto found = offsets.find(spec.id); found != offsets.end()) spec.hint = found->second;
  }
}

// --- reports about a plan --------------------------------------------------------------------------------------------

using fit::FoundPlan;

[[noreturn]] void fail_interrupted(const core::Plan& plan, const std::string& output, Json json) {
  throw Failure(kInterrupted,
                fmt::format("interrupted; the best plan so far needs {}{}", bytes_text(plan.bytes),
                            output.empty() ? std::string() : fmt::format(" and is in {}", core::output_name(output))),
                std::move(json));
}

report::PlanVerdict verdict_of(const FoundPlan& result) {
  return {report::plan_quality(result), result.solution.lower_bound, result.capacity, result.seconds};
}

/// Calls `work()` and returns its result. While `work()` runs, shows the name of the phase and its duration.
template <class Work>
auto planned(const PlanArguments& arguments, const char* phase, const Work& work) {
  ProgressLine line(arguments.console);
  line.name_phase(phase);
  return work();
}

// --- the two kinds of input ------------------------------------------------------------------------------------------

int plan_schedule(const PlanArguments& arguments) {
  solvers::PlanOptions options = arguments.options();
  const core::Graph graph = arguments.source.source().load({.stop = &catch_interrupt()});
  const auto file = core::load_schedule(arguments.schedule, graph, {}, reading(arguments.schedule));
  options.limit = from_start(options.limit);
  const core::Stopwatch watch(options.limit);
  if (!file.schedule.transfers.empty() && !arguments.csv.empty())
    throw core::InputError(
        fmt::format("{}: the CSV format has no times for copies between two steps, so --csv cannot "
                    "hold a plan with transfers; drop it",
                    core::input_name(arguments.schedule)));
  std::optional<core::Plan> read;  // the plan in the schedule's file
  if (options.guard_bytes == 0) read = fit::plan_at(graph, file.schedule, file.offsets, options.alignment);
  FoundPlan result{planned(arguments, "planning",
                           [&] {
                             if (read && read->bytes == read->lower_bound)
                               return solvers::PlanSolution{solvers::Status::optimal, *read, read->lower_bound};
                             return fit::checked_plan(graph, file.schedule, options);
                           }),
                   watch.seconds(),
                   {}};
  if (read && read->bytes < result.solution.plan.bytes) result.solution.plan = *read;
  const core::Plan& plan = result.solution.plan;
  const std::string name = fit::graph_name(graph, arguments.source.name);
  write_output(arguments.output, [&] { return core::plan_to_json(graph, plan); });
  write_output(arguments.csv, [&] { return core::plan_to_minimalloc_csv(graph, plan); });
  write_output(arguments.report,
               [&] { return report::plan_page(graph, file.schedule, plan, verdict_of(result), name); });

  Json json = report::plan_json(graph, file.schedule, result);
  json["graph"] = name;
  if (catch_interrupt())
    fail_interrupted(plan, arguments.output.empty() ? arguments.csv : arguments.output, std::move(json));
  Rows rows = report::plan_rows(result);
  rows.insert(rows.begin(), {"graph", name});
  rows.push_back({"peak of the schedule", bytes_text(core::evaluate(graph, file.schedule).peak)});
  arguments.console.print(json, format_table(rows));
  return kDone;
}

/// Describes buffers whose fixed offset puts them beyond the capacity. If there is such a buffer, no plan fits, and no
/// search is needed.
struct Beyond {
  std::string text;                  ///< names the first such buffer; empty if there is none
  std::vector<std::int32_t> buffer;  ///< index of the first such buffer; empty if there is none
  std::int64_t end = 0;              ///< the highest address at which a buffer ends
};

Beyond find_beyond(const std::vector<core::BufferSpec>& specs, const Space& space, std::int64_t alignment) {
  Beyond beyond;
  beyond.text = core::check_fixed_offsets(specs, space.forbidden, alignment, space.capacity);
  if (beyond.text.empty()) return beyond;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].offset) continue;
    const std::int64_t end = *specs[i].offset + core::align_up(specs[i].size, alignment);
    if (beyond.buffer.empty() && end > *space.capacity) beyond.buffer = {static_cast<std::int32_t>(i)};
    beyond.end = std::max(beyond.end, end);
  }
  return beyond;
}

int plan_csv(const PlanArguments& arguments) {
  const Space space = parse_space(arguments);
  solvers::PlanOptions options = arguments.options();
  auto specs = core::load_minimalloc_csv(arguments.buffers, reading(arguments.buffers));
  if (!arguments.hints.empty()) take_hints(specs, arguments.hints);
  const std::string contradiction = core::check_fixed_offsets(specs, space.forbidden, arguments.alignment);
  if (!contradiction.empty())
    throw core::InputError(fmt::format("{}: {}", core::input_name(arguments.buffers), contradiction));
  const Beyond beyond = find_beyond(specs, space, arguments.alignment);

  options.limit = from_start(options.limit);
  const core::Stopwatch watch(options.limit);
  if (!arguments.minimize && beyond.text.empty()) options.capacity = space.capacity;
  FoundPlan result{planned(arguments, "planning", [&] { return fit::checked_plan(specs, space.forbidden, options); }),
                   0, space.capacity};
  solvers::PlanConflict conflict{beyond.buffer, !beyond.buffer.empty()};
  if (!beyond.text.empty()) {
    result.solution.lower_bound = std::max(result.solution.lower_bound, beyond.end);
    result.solution.plan.bytes = std::max(result.solution.plan.bytes, beyond.end);
  } else if (result.status() == solvers::Status::infeasible) {
    solvers::PlanProblem problem = solvers::plan_problem(specs);
    problem.forbidden = space.forbidden;
    options.capacity = space.capacity;
    options.limit = watch.rest();
    conflict = planned(arguments, "looking for what does not fit",
                       [&] { return solvers::irreducible_conflict(problem, options); });
    if (!arguments.minimize) {  // finds a capacity that suffices, which the message names
      options.capacity.reset();
      options.limit = watch.rest();
      solvers::PlanSolution lowest =
          planned(arguments, "planning", [&] { return fit::checked_plan(specs, space.forbidden, options); });
      lowest.lower_bound = std::max(lowest.lower_bound, result.solution.lower_bound);
      if (lowest.plan.bytes <= result.solution.plan.bytes) result.solution = std::move(lowest);
    }
  }
  result.seconds = watch.seconds();

  const core::Plan& plan = result.solution.plan;
  Json json = report::plan_json(result);
  json["capacity_bytes"] = or_null(space.capacity);
  json["fits"] = result.fits();
  std::vector<std::string> ids;
  for (const std::int32_t b : conflict.buffers) ids.push_back(specs[b].id);
  if (result.status() == solvers::Status::infeasible) {
    json["conflict"] = ids;
    json["conflict_irreducible"] = conflict.irreducible;
  }
  write_output(arguments.report, [&] {
    return report::plan_page(arguments.buffers, {specs, plan, space.forbidden, std::move(conflict.buffers)},
                             verdict_of(result));
  });
  if (result.status() == solvers::Status::infeasible)
    throw Failure(kInfeasible,
                  report::no_plan_text(core::input_name(arguments.buffers), result,
                                       beyond.text.empty() ? report::conflict_text(ids) : beyond.text),
                  std::move(json));
  const std::string& output = arguments.output.empty() ? arguments.csv : arguments.output;
  if (!output.empty() && (result.fits() || catch_interrupt())) {
    for (const std::string& path : {arguments.output, arguments.csv})
      write_output(path, [&] { return core::minimalloc_csv(specs, plan); });
  }
  if (catch_interrupt()) fail_interrupted(plan, output, std::move(json));
  if (!result.fits())
    throw Failure(kNotFound, report::no_plan_text(core::input_name(arguments.buffers), result), std::move(json));
  arguments.console.print(json, format_table(report::plan_rows(result)));
  return kDone;
}

int plan(const PlanArguments& arguments) {
  require_outputs({{"-o", arguments.output}, {"--csv", arguments.csv}, {"--report", arguments.report}},
                  {arguments.source.input(),
                   {"SCHEDULE", arguments.schedule},
                   {"--buffers", arguments.buffers},
                   {"--hints", arguments.hints}});
  if (!arguments.buffers.empty()) {
    if (!arguments.source.name.empty()) throw core::InputError("give either GRAPH and SCHEDULE or --buffers, not both");
    return plan_csv(arguments);
  }
  if (arguments.source.name.empty() || arguments.schedule.empty())
    throw core::InputError("plan needs GRAPH and SCHEDULE, or --buffers F.csv");
  for (const auto& [option, given] : {std::pair{"--capacity", !arguments.capacity.empty()},
                                      {"--bank", !arguments.banks.empty()},
                                      {"--forbid", !arguments.forbidden.empty()},
                                      {"--hints", !arguments.hints.empty()},
                                      {"--minimize", arguments.minimize}}) {
    if (given) throw core::InputError(fmt::format("{0} goes with --buffers; drop it, or give --buffers", option));
  }
  return plan_schedule(arguments);
}

}  // namespace

Subcommand add_plan(CLI::App& root) {
  CLI::App* app = root.add_subcommand("plan", "place the tensors of a schedule, or the buffers of a CSV, in one arena");
  auto arguments = std::make_shared<PlanArguments>();
  arguments->console.add_to(*app);
  app->add_option("--alignment", arguments->alignment, "sizes and offsets of the plan are multiples of this many bytes")
      ->capture_default_str()
      ->check(at_least_one());
  app->add_option("-o,--output", arguments->output, "plan to write: JSON for a schedule, CSV for --buffers");
  app->add_option("--csv", arguments->csv, "MiniMalloc CSV with offsets to write");
  app->add_option("--report", arguments->report, "HTML page to write: the load over time, and where every buffer lies");
  add_time_limit(*app, arguments->time_limit,
                 "wall time of the command, as 10s, 500ms or 2m; default: a work limit of about one second");
  add_threads(*app, "of the search");
  app->add_option("--buffers", arguments->buffers,
                  "MiniMalloc CSV with columns id, lower, upper, size; optional: alignment, offset, hint, gaps");
  app->add_option("--capacity", arguments->capacity,
                  "bytes that the buffers must fit into, as 1048576 or 1MiB: the search ends once they do");
  app->add_flag("--minimize", arguments->minimize,
                "search for the least height even if the plan already fits into the capacity");
  const auto repeated = [&](const std::string& option, std::vector<std::string>& values, const std::string& help) {
    app->add_option(option, values, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  repeated("--bank", arguments->banks,
           "bytes of one of several banks or arenas, first to last; no buffer lies across two; may be repeated");
  repeated("--forbid", arguments->forbidden,
           "BEGIN:END of addresses that no buffer may touch, as 4096:8192; may be repeated");
  app->add_option("--hints", arguments->hints, "earlier plan (CSV): its offsets are tried first, by id");
  arguments->source.add_to(*app);
  app->get_option("GRAPH")->required(false);
  app->add_option("SCHEDULE", arguments->schedule, "schedule file, as 'cairn solve -o' writes it");
  app->footer(
      "Examples:\n"
      "  cairn plan graph.json s.json --alignment 256 -o plan.json --csv plan.csv\n"
      "  cairn plan --buffers A.1048576.csv --capacity 1048576 -o out.csv\n"
      "  cairn plan --buffers B.csv --bank 512KiB --bank 1MiB --forbid 0:4096 --report b.html");
  return {app, [arguments] { return plan(*arguments); }};
}

}  // namespace cairn::cli
