// Makes the JSON object that a page's scripts read. To keep the object small, it stores columns of numbers, most of
// which are indices in tables of tensors, nodes, kinds, layers and ops.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/core/support/timeline.h"
#include "cairn/core/version.h"
#include "cairn/report/explain/support/explain.h"
#include "cairn/report/html/internal/buffers.h"
#include "cairn/report/html/report.h"
#include "cairn/report/html/support/words.h"

namespace cairn::report {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kMostPoints = 12'000;  ///< largest number of points of a curve
/// Largest number of tensors of one schedule that the page contains. Up to kMostAtPeak tensors at the peak come in
/// addition.
constexpr std::size_t kMostLives = 12'000;
constexpr std::size_t kMostAtPeak = 6'000;
constexpr std::size_t kMostRecomputed = 300;
/// Approximate number of readers (nodes that read a tensor) that the page lists for all tensors together. It is divided
/// equally among the tensors, but each tensor may list at least four readers.
constexpr std::size_t kMostReaders = 200'000;
constexpr std::int32_t kSmallGraph = 12'000;  ///< for a graph with at most this many nodes, the page contains all names

/// Collects the nodes or tensors whose names the page contains. For a small graph, these are all of them. For a large
/// graph, these are the ones that the page refers to, in the order of first use.
class Named {
 public:
  Named(std::int32_t count, bool all) : place_(static_cast<std::size_t>(count), -1) {
    for (std::int32_t item = 0; all && item < count; ++item) of(item);
  }
  std::int32_t of(std::int32_t item) {
    if (place_[item] < 0) {
      place_[item] = static_cast<std::int32_t>(items_.size());
      items_.push_back(item);
    }
    return place_[item];
  }
  std::int32_t known(std::int32_t item) const { return place_[item]; }
  const std::vector<std::int32_t>& items() const { return items_; }

 private:
  std::vector<std::int32_t> place_, items_;
};

/// Chooses the points of a long curve that the page shows. Divides the curve into ranges of consecutive points, and
/// returns the indices of the first, the lowest and the highest point of each range, in ascending order.
std::vector<std::size_t> thinned(const Numbers& bytes) {
  std::vector<std::size_t> kept;
  const std::size_t runs = kMostPoints / 3;
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t begin = run * bytes.size() / runs, end = (run + 1) * bytes.size() / runs;
    const auto [low, high] = std::minmax_element(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 bytes.begin() + static_cast<std::ptrdiff_t>(end));
    std::size_t places[] = {begin, static_cast<std::size_t>(low - bytes.begin()),
                            static_cast<std::size_t>(high - bytes.begin())};
    std::sort(std::begin(places), std::end(places));
    kept.insert(kept.end(), std::begin(places), std::unique(std::begin(places), std::end(places)));
  }
  return kept;
}

Numbers picked(const Numbers& values, const std::vector<std::size_t>& places) {
  Numbers some;
  some.reserve(places.size());
  for (const std::size_t place : places) some.push_back(values[place]);
  return some;
}

/// The time during which a tensor is in memory, and its address.
struct Life {
  std::int32_t tensor = 0;
  std::int64_t first = 0, last = 0;  ///< first: step that makes the tensor; last: step of its last use
  std::int64_t number = 0;           ///< number of earlier runs of the tensor's node
  std::int64_t size = 0;             ///< bytes of the tensor
  std::int64_t offset = -1;          ///< offset of the tensor's buffer; -1: it has no buffer
  std::int64_t bytes = 0;            ///< bytes of the tensor's buffer

  double area() const { return static_cast<double>(size) * static_cast<double>(last - first + 1); }
};

/// Returns the tensors with the largest areas (bytes times steps in memory), and the largest tensors at the step
/// `peak`, in the order in which `lives` has them. Writes to `track` how many tensors `lives` has, and which fraction
/// of their total area the result has.
std::vector<Life> largest(std::vector<Life> lives, std::int64_t peak, Json& track) {
  track["lives_of"] = lives.size();
  track["lives_share"] = 1.0;
  if (lives.size() <= kMostLives) return lives;
  std::vector<std::size_t> order(lives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lives[a].area() > lives[b].area(); });
  std::vector<std::uint8_t> taken(lives.size(), 0);
  for (std::size_t rank = 0; rank < kMostLives; ++rank) taken[order[rank]] = 1;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lives[a].size > lives[b].size; });
  std::size_t at_peak = 0;
  for (const std::size_t i : order) {
    if (lives[i].first <= peak && peak <= lives[i].last && at_peak++ < kMostAtPeak) taken[i] = 1;
  }
  double all = 0, shown = 0;
  std::vector<Life> kept;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    all += lives[i].area();
    if (taken[i] == 0) continue;
    shown += lives[i].area();
    kept.push_back(lives[i]);
  }
  track["lives_share"] = all > 0 ? shown / all : 1.0;
  return kept;
}

Json columns(const std::vector<Life>& lives) {
  Numbers tensor, first, last, number, offset, bytes;
  for (const Life& life : lives) {
    tensor.push_back(life.tensor);
    first.push_back(life.first);
    last.push_back(life.last);
    number.push_back(life.number);
    offset.push_back(life.offset);
    bytes.push_back(life.bytes);
  }
  return {{"tensor", tensor}, {"first", first},   {"last", last},
          {"number", number}, {"offset", offset}, {"bytes", bytes}};
}

// --- a graph and its schedules -------------------------------------------------------------------------------------

/// Writes the JSON of the schedules, and collects the nodes and tensors to which the schedules refer. Finally writes
/// the tables of these nodes and tensors.
class GraphData {
 public:
  explicit GraphData(const Report& page)
      : page_(page),
        graph_(page.graph),
        labels_(label_tensors(page.graph)),
        nodes_(graph_.node_count(), graph_.node_count() <= kSmallGraph),
        tensors_(graph_.value_count(), graph_.node_count() <= kSmallGraph) {}

  void add_to(Json& json) {
    json["tracks"] = Json::array();
    for (const ReportSchedule& schedule : page_.schedules) json["tracks"].push_back(track_of(schedule));
    json["tensors"] = tensor_table();
    json["tensors_of"] = graph_.value_count();
    json["nodes"] = node_table();
    json["ops"] = ops_;
    json["layers"] = labels_.layers;
    json["kinds"] = Json::array();
    for (int k = 0; k < kTensorKinds; ++k) {
      const auto kind = static_cast<TensorKind>(k);
      const std::string_view name = to_string(kind);
      json["kinds"].push_back({{"name", kind == TensorKind::statistic  ? "saved statistic"
                                        : kind == TensorKind::in_place ? "taken over in place"
                                                                       : name},
                               {"color", name}});
    }
  }

 private:
  Json track_of(const ReportSchedule& schedule) {
    const std::vector<core::NodeId>& steps = schedule.schedule.steps;
    const core::Evaluation evaluation = core::evaluate(graph_, schedule.schedule);
    const Numbers profile = core::Evaluator(graph_).profile(schedule.schedule);  // throws if the schedule is invalid
    const bool moves = !schedule.schedule.transfers.empty();
    const bool timed = moves && graph_.host_memory();
    core::Timeline times;
    if (timed) times = core::timeline(graph_, schedule.schedule, graph_.host_memory()->link);
    Numbers during(steps.size()), before(steps.size()), node(steps.size());
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      // If the schedule has transfers, the memory shown for a step is the maximum of the memory during the step and of
      // the memory right after the step, in which copies run.
      during[i] = moves ? std::max(profile[2 * i + 1], profile[2 * i + 2]) : profile[2 * i + 1];
      before[i] = timed ? times.steps[i].begin : cost;
      cost += graph_.cost(steps[i]);
    }
    Json track{{"name", schedule.name},
               {"unit", "step"},
               {"begin", 0},
               {"length", steps.size()},
               {"cost", evaluation.cost},
               {"peak", peak_of(schedule.schedule)},
               {"recomputed_steps", evaluation.recomputed}};
    const bool thin = steps.size() > kMostPoints;
    std::vector<std::size_t> places(steps.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    if (thin) {
      places = thinned(during);
      // minmax_element() returns the last step that reaches the peak. The page explains the first step that reaches the
      // peak, so this step is shown, too.
      const auto peak = static_cast<std::size_t>(evaluation.peak_step);
      const auto at = std::lower_bound(places.begin(), places.end(), peak);
      if (at == places.end() || *at != peak) places.insert(at, peak);
    }
    track["thinned"] = thin;
    track["at"] = thin ? Json(places) : Json(nullptr);
    track["bytes"] = picked(during, places);
    track["before"] = evaluation.cost > 0 ? Json(picked(before, places)) : Json(nullptr);
    Json& named = track["node"] = Json::array();
    for (const std::size_t place : places) named.push_back(nodes_.of(steps[place]));
    track["lives"] = columns(lives_of(schedule, evaluation.peak_step, track));
    track["arena_bytes"] = schedule.plan ? schedule.plan->bytes : 0;
    add_scratch(schedule, track);
    track["recomputed"] = evaluation.recomputed > 0 ? recomputed_of(schedule.schedule) : Json(nullptr);
    return track;
  }

  /// Returns what is in memory at the schedule's peak, as sums by kind and by layer. The sums are exact even if the
  /// page names only some of the tensors.
  Json peak_of(const core::Schedule& schedule) {
    if (schedule.steps.empty())
      return {{"at", 0}, {"bytes", 0}, {"tensors", 0}, {"by_kind", Json::array()}, {"by_layer", Json::array()}};
    const MemoryAt peak = memory_at_peak(graph_, labels_, schedule);
    const auto rows = [](const std::vector<MemoryShare>& shares) {
      Json list = Json::array();
      for (const auto& [group, bytes, tensors] : shares)
        list.push_back({{"group", group}, {"bytes", bytes}, {"tensors", tensors}});
      return list;
    };
    return {{"at", peak.step},
            {"bytes", peak.bytes},
            {"tensors", peak.tensors.size()},
            {"by_kind", rows(peak.by_kind)},
            {"by_layer", rows(peak.by_layer)}};
  }

  std::vector<Life> lives_of(const ReportSchedule& schedule, std::int64_t peak, Json& track) {
    std::map<std::tuple<std::int64_t, std::int32_t, std::int32_t>, const core::Buffer*> buffer_of;
    if (schedule.plan) {
      for (const core::Buffer& buffer : schedule.plan->buffers) {
        if (!buffer.scratch) buffer_of[{buffer.first, buffer.output, buffer.fetch}] = &buffer;
      }
    }
    const auto& [evicts, fetches] = schedule.schedule.transfers;
    std::vector<std::int64_t> made(static_cast<std::size_t>(graph_.value_count()), 0);
    // For each evict, Life::number of the occurrence that it copies.
    std::vector<std::int64_t> number_of(evicts.size(), 0);
    std::vector<Life> lives;
    for (const core::Lifetime& lifetime : core::lifetimes(graph_, schedule.schedule)) {
      const core::ValueId value = graph_.value({lifetime.node, lifetime.output});
      // A fetched tensor is in memory from the step after the fetch's start on. The lifetimes of fetched tensors come
      // after those of computed tensors, so number_of is already set.
      const bool fetched = lifetime.fetch >= 0;
      const std::int64_t number = fetched ? number_of[fetches[lifetime.fetch].evict] : made[value]++;
      if (lifetime.evict >= 0) number_of[lifetime.evict] = number;
      Life life{value, lifetime.first + (fetched ? 1 : 0), lifetime.last, number, graph_.value_size(value)};
      const auto found = buffer_of.find({lifetime.first, lifetime.output, lifetime.fetch});
      if (found != buffer_of.end()) {
        life.offset = found->second->offset;
        life.bytes = found->second->size;
      }
      lives.push_back(life);
    }
    lives = largest(std::move(lives), peak, track);
    for (Life& life : lives) life.tensor = tensors_.of(life.tensor);
    return lives;
  }

  static void add_scratch(const ReportSchedule& schedule, Json& track) {
    std::vector<const core::Buffer*> scratch;
    if (schedule.plan) {
      for (const core::Buffer& buffer : schedule.plan->buffers) {
        if (buffer.scratch) scratch.push_back(&buffer);
      }
    }
    if (scratch.size() > kMostLives) {
      std::nth_element(scratch.begin(), scratch.begin() + kMostLives, scratch.end(),
                       [](const core::Buffer* a, const core::Buffer* b) { return a->size > b->size; });
      scratch.resize(kMostLives);
    }
    Numbers at, offset, bytes;
    for (const core::Buffer* buffer : scratch) {
      at.push_back(buffer->first);
      offset.push_back(buffer->offset);
      bytes.push_back(buffer->size);
    }
    track["scratch"] = {{"at", at}, {"offset", offset}, {"bytes", bytes}};
  }

  Json recomputed_of(const core::Schedule& schedule) {
    const RecomputationSummary summary = explain_recomputation(graph_, labels_, schedule);
    std::map<core::NodeId, const Recomputation*> first;
    for (const Recomputation& event : summary.events) first.emplace(event.node, &event);
    Json rows = Json::array();
    for (const RecomputedNode& item : summary.nodes) {
      if (rows.size() == kMostRecomputed) break;
      const auto outputs = graph_.outputs(item.node);
      const core::ValueId largest_output =
          *std::ranges::max_element(outputs, {}, [&](core::ValueId output) { return graph_.value_size(output); });
      rows.push_back({{"node", nodes_.of(item.node)},
                      {"tensor", tensors_.of(largest_output)},
                      {"times", item.times},
                      {"extra_cost", item.extra_cost},
                      {"bytes", item.bytes},
                      {"saved_at_baseline_peak", item.saved_at_baseline_peak},
                      {"saved_on_average", item.saved_on_average},
                      {"step", first.at(item.node)->step},
                      {"first_use", first.at(item.node)->first_use}});
    }
    const RecomputedShare& total = summary.total;
    return {{"nodes", std::move(rows)},
            {"total",
             {{"nodes", total.nodes},
              {"times", total.times},
              {"extra_cost", total.extra_cost},
              {"saved_at_baseline_peak", total.saved_at_baseline_peak},
              {"saved_on_average", total.saved_on_average}}}};
  }

  Json tensor_table() {
    Json name = Json::array(), readers = Json::array();
    Numbers bytes, kind, node, reader_count;
    const std::size_t most_readers = std::max<std::size_t>(4, kMostReaders / (tensors_.items().size() + 1));
    for (const core::ValueId value : tensors_.items()) {
      name.push_back(graph_.value_name(value));
      bytes.push_back(graph_.value_size(value));
      kind.push_back(static_cast<std::int64_t>(labels_.kind_of[value]));
      node.push_back(nodes_.of(graph_.producer(value)));
      Json& list = readers.emplace_back(Json::array());
      reader_count.push_back(static_cast<std::int64_t>(graph_.readers(value).size()));
      for (const core::NodeId reader : graph_.readers(value)) {
        if (list.size() == most_readers) break;
        list.push_back(nodes_.of(reader));
      }
    }
    return {{"name", std::move(name)},
            {"bytes", bytes},
            {"kind", kind},
            {"node", node},
            {"readers", std::move(readers)},
            {"reader_count", reader_count}};
  }

  Json node_table() {
    Json name = Json::array();
    Numbers op, cost, scratch, layer;
    std::map<std::string, std::int64_t, std::less<>> op_index;
    for (const core::NodeId v : nodes_.items()) {
      name.push_back(graph_.name(v));
      cost.push_back(graph_.cost(v));
      scratch.push_back(graph_.scratch(v));
      layer.push_back(labels_.layer_of[v]);
      op.push_back(-1);
      if (const core::Op* kind = graph_.op(v)) {
        const auto [at, is_new] = op_index.emplace(to_string(kind->kind), static_cast<std::int64_t>(ops_.size()));
        if (is_new) ops_.push_back(at->first);
        op.back() = at->second;
      }
    }
    return {{"name", std::move(name)}, {"op", op}, {"cost", cost}, {"scratch", scratch}, {"layer", layer}};
  }

  const Report& page_;
  const core::Graph& graph_;
  TensorLabels labels_;
  Named nodes_, tensors_;
  std::vector<std::string> ops_;
};

// --- buffers that belong to no graph -------------------------------------------------------------------------------

void add_buffers(Json& json, const ReportBuffers& shown) {
  const std::vector<core::Buffer>& buffers = shown.plan.buffers;
  // For each time, the change of the number of live bytes.
  std::map<std::int64_t, std::int64_t> changes;
  std::vector<Life> lives;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].size == 0) continue;
    std::int64_t lower = buffers[b].first;
    const auto add = [&](std::int64_t upper) {
      changes[lower] += buffers[b].size;
      changes[upper] -= buffers[b].size;
      lives.push_back(
          {static_cast<std::int32_t>(b), lower, upper - 1, 0, buffers[b].size, buffers[b].offset, buffers[b].size});
    };
    for (const auto& [gap_lower, gap_upper] : shown.specs[b].gaps) {
      add(gap_lower);
      lower = gap_upper;
    }
    add(buffers[b].last + 1);
  }
  if (changes.empty()) changes[0] = 0;
  Numbers at, load;
  std::int64_t bytes = 0;
  for (const auto& [time, change] : changes) {
    bytes += change;
    at.push_back(time);
    load.push_back(bytes);
  }
  const std::int64_t end = at.back();
  if (at.size() > 1) {  // after the last change, nothing is live
    at.pop_back();
    load.pop_back();
  }
  const auto peak = std::max_element(load.begin(), load.end());
  const std::int64_t peak_at = at[static_cast<std::size_t>(peak - load.begin())];
  Json track{{"name", "buffers"}, {"unit", "time"}, {"begin", at.front()},
             {"length", end},     {"cost", 0},      {"peak", {{"at", peak_at}, {"bytes", *peak}}}};
  std::vector<std::size_t> places(at.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  track["thinned"] = at.size() > kMostPoints;
  if (at.size() > kMostPoints) places = thinned(load);
  track["at"] = picked(at, places);
  track["bytes"] = picked(load, places);
  track["before"] = nullptr;
  track["node"] = Json::array();
  Named tensors(static_cast<std::int32_t>(buffers.size()), buffers.size() <= kMostLives);
  std::vector<std::int32_t> conflict;
  for (const std::int32_t b : shown.conflict) conflict.push_back(tensors.of(b));
  lives = largest(std::move(lives), peak_at, track);
  for (Life& life : lives) life.tensor = tensors.of(life.tensor);
  track["lives"] = columns(lives);
  track["arena_bytes"] = shown.plan.bytes;
  track["scratch"] = {{"at", Json::array()}, {"offset", Json::array()}, {"bytes", Json::array()}};
  track["recomputed"] = nullptr;
  track["conflict"] = conflict;
  json["tracks"] = Json::array({std::move(track)});

  const html::BufferClasses classes = html::classes_of(shown.specs, shown.plan);
  Json name = Json::array();
  Numbers size, kind, node;
  for (const std::int32_t b : tensors.items()) {
    name.push_back(shown.specs[b].id);
    size.push_back(buffers[b].size);
    kind.push_back(classes.of_buffer[b]);
    node.push_back(-1);
  }
  json["tensors"] = {
      {"name", std::move(name)}, {"bytes", size}, {"kind", kind}, {"node", node}, {"readers", Json::array()}};
  json["tensors_of"] = buffers.size();
  json["nodes"] = {{"name", Json::array()},
                   {"op", Json::array()},
                   {"cost", Json::array()},
                   {"scratch", Json::array()},
                   {"layer", Json::array()}};
  json["ops"] = json["layers"] = Json::array();
  json["kinds"] = Json::array();
  for (std::size_t k = 0; k < classes.names.size(); ++k)
    json["kinds"].push_back({{"name", classes.names[k]}, {"color", "class" + std::to_string(k)}});
}

// --- everything else -----------------------------------------------------------------------------------------------

Json to_json(const ReportPoint& point) {
  return {{"bytes", point.bytes}, {"cost", point.cost},     {"name", point.name},
          {"note", point.note},   {"marked", point.marked}, {"track", point.schedule}};
}

Json to_json(const std::vector<ReportPoint>& points) {
  Json list = Json::array();
  for (const ReportPoint& point : points) list.push_back(to_json(point));
  return list;
}

const char* color_of(ReportLevel::Kind kind) {
  switch (kind) {
    case ReportLevel::Kind::bound:
      return "bound";
    case ReportLevel::Kind::schedule:
      return "schedule";
    case ReportLevel::Kind::baseline:
      return "baseline";
    case ReportLevel::Kind::budget:
      break;
  }
  return "budget";
}

const char* tone_of(ReportFact::Tone tone) {
  return tone == ReportFact::Tone::good ? "good" : tone == ReportFact::Tone::bad ? "bad" : "";
}

}  // namespace

std::string report_data(const Report& report) {
  Json json{{"format", "cairn.report"},  {"version", 1},
            {"cairn", core::kVersion},   {"title", report.title},
            {"command", report.command}, {"summary", report.summary}};
  json["facts"] = Json::array();
  for (const ReportFact& fact : report.facts)
    json["facts"].push_back(
        {{"name", fact.name}, {"value", fact.value}, {"note", fact.note}, {"tone", tone_of(fact.tone)}});
  json["notes"] = report.notes;
  json["tables"] = Json::array();
  for (const ReportTable& table : report.tables) {
    Json rows = Json::array();
    for (const ReportTable::Row& row : table.rows) rows.push_back({{"cells", row.cells}, {"marked", row.marked}});
    json["tables"].push_back(
        {{"title", table.title}, {"note", table.note}, {"head", table.head}, {"rows", std::move(rows)}});
  }
  json["cost_unit"] = report.cost_unit;
  json["baseline_cost"] = core::evaluate(report.graph, core::baseline_schedule(report.graph)).cost;
  json["shown"] = report.shown;
  json["levels"] = Json::array();
  for (const ReportLevel& level : report.levels)
    json["levels"].push_back(
        {{"name", level.name}, {"bytes", level.bytes}, {"color", color_of(level.kind)}, {"of_plan", level.of_plan}});
  json["budget_bytes"] = report.budget_bytes ? Json(*report.budget_bytes) : Json(nullptr);
  json["tradeoff"] = nullptr;
  if (const auto& tradeoff = report.tradeoff) {
    json["tradeoff"] = {{"memory", tradeoff->memory},
                        {"note", tradeoff->note},
                        {"found", to_json(tradeoff->found)},
                        {"proved", to_json(tradeoff->proved)},
                        {"baseline", to_json(tradeoff->baseline)},
                        {"lower_bound_bytes", tradeoff->lower_bound_bytes}};
  }
  json["tradeoff_first"] = report.tradeoff_first;
  json["histogram"] = nullptr;
  if (const auto& histogram = report.histogram)
    json["histogram"] = {{"from", histogram->from}, {"width", histogram->width}, {"counts", histogram->counts}};
  json["pictures"] = Json::array();
  for (const ReportPicture& picture : report.pictures)
    json["pictures"].push_back({{"title", picture.title}, {"note", picture.note}, {"svg", picture.svg}});
  json["forbidden"] = Json::array();
  if (report.buffers) {
    for (const core::AddressRange& range : report.buffers->forbidden)
      json["forbidden"].push_back({{"lower", range.lower}, {"upper", range.upper}});
    add_buffers(json, *report.buffers);
  } else {
    GraphData(report).add_to(json);
  }
  // The text is escaped to ASCII without "<", so that no name can end the HTML element that contains it.
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace cairn::report
