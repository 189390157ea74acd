#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/profile.h"

namespace cairn::core {

std::string schedule_to_json(const Graph& graph, const Schedule& schedule, std::string_view solver,
                             const std::optional<Plan>& plan) {
  const Evaluation measured = evaluate(graph, schedule);
  if (!measured.valid()) {
    throw InputError(fmt::format("the schedule is not valid: {}", describe(graph, measured.defect)));
  }
  formats::OrderedJson json{{"format", "cairn.schedule"},   {"version", 1},
                            {"graph", graph.fingerprint()}, {"solver", solver},
                            {"steps", schedule.steps},      {"peak_bytes", measured.peak},
                            {"cost", measured.cost}};
  if (plan) {
    json["planned_bytes"] = plan->bytes;
    json["alignment"] = plan->alignment;
    json["offsets"] = offsets_of(*plan);
  }
  return formats::dump(json) + "\n";
}

ScheduleWriter::ScheduleWriter(const std::string& path, const Graph& graph, std::string_view solver) : file_(path) {
  file_.write(fmt::format(R"({{"format":"cairn.schedule","version":1,"graph":"{}","solver":"{}","steps":[)",
                          graph.fingerprint(), solver));
}

void ScheduleWriter::write(std::span<const NodeId> steps) {
  text_.clear();
  for (const NodeId v : steps)
    fmt::format_to(std::back_inserter(text_), "{}{}", std::exchange(first_, false) ? "" : ",", v);
  file_.write(text_);
}

void ScheduleWriter::commit(std::int64_t peak_bytes, std::int64_t cost) {
  file_.write(fmt::format("],\"peak_bytes\":{},\"cost\":{}}}\n", peak_bytes, cost));
  file_.commit();
}

ScheduleFile load_schedule(const std::string& path, const Graph& graph, std::string_view or_fingerprint,
                           const ReadOptions& options) {
  return parse_schedule(read_file(path, options), input_name(path), graph, or_fingerprint, options);
}

ScheduleFile parse_schedule(std::string_view text, const std::string& origin, const Graph& graph,
                            std::string_view or_fingerprint, const ReadOptions& options) {
  using namespace formats;
  static constexpr auto kKeys = sorted_keys(
      {"alignment", "cost", "format", "graph", "offsets", "peak_bytes", "planned_bytes", "solver", "steps", "version"});
  Notices notices(options.warn);
  const Place place{.origin = origin, .notices = &notices};
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) place.fail("is empty");
  const Json json = parse_json(text, origin, options, &notices);
  check_header(json, "cairn.schedule", place, &graph, or_fingerprint);
  place.check_keys(json, kKeys);

  ScheduleFile file;
  file.graph = graph.fingerprint();
  file.solver = string_or(json, "solver", place, "");
  const Json& steps = require_array(json, "steps", place);
  file.schedule.steps.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Place step{.origin = origin, .list = "step", .index = static_cast<std::int64_t>(i)};
    file.schedule.steps.push_back(to_index(steps[i], graph.node_count(), "steps", step));
  }
  file.offsets = read_ints(json, "offsets", place);
  // The fingerprint does not cover costs, which may have been measured again. So peak and cost are computed for this
  // graph.
  const Evaluation measured = evaluate(graph, file.schedule);
  if (!measured.valid()) place.fail(describe(graph, measured.defect));
  file.peak_bytes = measured.peak;
  file.cost = measured.cost;
  notices.tell();
  return file;
}

}  // namespace cairn::core
