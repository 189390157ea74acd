#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/formats/support/transfers.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"

namespace cairn::core {
namespace formats {
namespace {

/// Calls `read(object, place)` for each object of the list that `json` has under `key`. Messages call an object `word`.
template <class Read>
void read_objects(const Json& json, const char* key, std::string_view word, std::span<const std::string_view> keys,
                  const Place& top, const Read& read) {
  const Json& list = require_array(json, key, top);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place place{
        .origin = top.origin, .list = word, .index = static_cast<std::int64_t>(i), .notices = top.notices};
    if (!list[i].is_object()) place.fail(fmt::format("must be an object, not {}", formats::describe(list[i])));
    place.check_keys(list[i], keys);
    read(list[i], place);
  }
}

}  // namespace

OrderedJson to_json(const Graph& graph, const Transfers& transfers) {
  OrderedJson evicts = OrderedJson::array(), fetches = OrderedJson::array();
  for (const Evict& evict : transfers.evicts) {
    evicts.push_back({{"value", formats::to_json(graph.output_ref(evict.value))},
                      {"made", evict.made},
                      {"start", evict.start},
                      {"finish", evict.finish}});
  }
  for (const Fetch& fetch : transfers.fetches) {
    fetches.push_back({{"evict", fetch.evict}, {"start", fetch.start}, {"finish", fetch.finish}});
  }
  return {{"evicts", std::move(evicts)}, {"fetches", std::move(fetches)}};
}

Transfers read_transfers(const Json& json, const Graph& graph, const Place& top) {
  static constexpr auto kKeys = sorted_keys({"evicts", "fetches"});
  static constexpr auto kEvictKeys = sorted_keys({"finish", "made", "start", "value"});
  static constexpr auto kFetchKeys = sorted_keys({"evict", "finish", "start"});
  if (!json.is_object()) top.fail(fmt::format("\"transfers\" must be an object, not {}", formats::describe(json)));
  top.check_keys(json, kKeys);
  Transfers transfers;
  read_objects(json, "evicts", "evict", kEvictKeys, top, [&](const Json& object, const Place& place) {
    const OutputRef ref = to_output_ref(require(object, "value", place), graph.node_count(), "value", place);
    if (ref.output >= graph.output_count(ref.node)) {
      place.fail(fmt::format("\"value\" names output {} of node {}, which has only {}", ref.output, ref.node,
                             graph.output_count(ref.node)));
    }
    transfers.evicts.push_back({graph.value(ref), require_int(object, "made", place),
                                require_int(object, "start", place), require_int(object, "finish", place)});
  });
  read_objects(json, "fetches", "fetch", kFetchKeys, top, [&](const Json& object, const Place& place) {
    const auto count = static_cast<std::int32_t>(transfers.evicts.size());
    transfers.fetches.push_back({to_index(require(object, "evict", place), count, "evicts", place),
                                 require_int(object, "start", place), require_int(object, "finish", place)});
  });
  return transfers;
}

}  // namespace formats

using namespace formats;

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
  if (!schedule.transfers.empty()) {
    json["transfers"] = to_json(graph, schedule.transfers);
    json["host_peak_bytes"] = host_peak(graph, schedule);
  }
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
  static constexpr auto kKeys = sorted_keys({"alignment", "cost", "format", "graph", "host_peak_bytes", "offsets",
                                             "peak_bytes", "planned_bytes", "solver", "steps", "transfers", "version"});
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
  if (const Json* transfers = find(json, "transfers")) {
    file.schedule.transfers = read_transfers(*transfers, graph, place);
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
