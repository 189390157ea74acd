#include "cairn/report/support/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/report/support/words.h"

namespace cairn::report {
namespace {

constexpr std::size_t kShownLayers = 12, kShownTensors = 5, kNamedLayers = 3, kListedRuns = 10;
constexpr std::size_t kLongestName = 48;

std::string_view kind_words(TensorKind kind) {
  constexpr std::array<std::string_view, kTensorKinds> kWords = {
      "activations", "gradients", "saved statistics", "tensors", "kept to the end", "scratch", "taken over in place"};
  return kWords[static_cast<std::size_t>(kind)];
}

/// Shortens a long name by replacing its beginning with "...", because the end of a node's name usually says more.
std::string shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  std::size_t begin = name.size() - kLongestName + 3;
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xC0) == 0x80) ++begin;
  return "..." + name.substr(begin);
}

double part_pct(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string part_text(std::int64_t part, std::int64_t whole) {
  const std::string bytes = part < 0 ? "-" + core::format_bytes(-part) : core::format_bytes(part);
  return fmt::format("{} ({:.1f}%)", bytes, part_pct(part, whole));
}

std::string mean_text(double bytes) { return core::format_bytes(static_cast<std::int64_t>(bytes)); }

const MemoryShare* find_share(const std::vector<MemoryShare>& shares, std::int32_t group) {
  const auto found =
      std::find_if(shares.begin(), shares.end(), [&](const auto& share) { return share.group == group; });
  return found == shares.end() ? nullptr : &*found;
}

std::string part_cell(const MemoryAt& at, const std::vector<MemoryShare>& shares, std::int32_t group) {
  const MemoryShare* share = find_share(shares, group);
  return share != nullptr ? part_text(share->bytes, at.bytes) : "-";
}

/// Returns how many of `count` items to show: at most `most`, or all of them if `count` is `most` + 1.
std::size_t shown_count(std::size_t count, std::size_t most) { return count <= most + 1 ? count : most; }

Json step_json(std::int64_t step) { return step < 0 ? Json(nullptr) : Json(step); }

template <class Names>
Json shares_json(const char* key, const std::vector<MemoryShare>& shares, const Names& name_of) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(shares.size(), Explanation::kListed); ++i) {
    list.push_back({{key, name_of(shares[i].group)}, {"bytes", shares[i].bytes}, {"tensors", shares[i].tensors}});
  }
  return list;
}

template <class Saved>
void add_savings(Json& json, const Saved& saved, std::int64_t baseline_cost) {
  json["times"] = saved.times;
  json["extra_cost"] = saved.extra_cost;
  json["extra_cost_pct"] = part_pct(saved.extra_cost, baseline_cost);
  json["saved_at_baseline_peak_bytes"] = saved.saved_at_baseline_peak;
  json["saved_at_peak_bytes"] = saved.saved_at_peak;
  json["saved_on_average_bytes"] = saved.saved_on_average;
}

void add_share(RecomputedShare& sum, const RecomputedShare& share) {
  sum.nodes += share.nodes;
  sum.times += share.times;
  sum.extra_cost += share.extra_cost;
  sum.saved_at_baseline_peak += share.saved_at_baseline_peak;
  sum.saved_at_peak += share.saved_at_peak;
  sum.saved_on_average += share.saved_on_average;
}

}  // namespace

Explanation::Explanation(const core::Graph& graph, const core::Schedule* schedule)
    : graph_(graph), labels_(label_tensors(graph)) {
  const core::Schedule baseline = core::baseline_schedule(graph);
  baseline_ = {memory_at_peak(graph, labels_, baseline), baseline.length(), {}};
  baseline_cost_ = core::evaluate(graph, baseline).cost;
  if (schedule != nullptr) {
    schedule_ = {memory_at_peak(graph, labels_, *schedule), schedule->length(), {}};
    recomputation_ = explain_recomputation(graph, labels_, *schedule);
    if (graph.host_memory()) {
      moved_ = *schedule;
      transfers_ = explain_transfers(graph, moved_, graph.host_memory()->link);
    }
  }
  choose_rows();
}

/// Decides whether rows show single layers or ranges of consecutive layers. They show single layers if the kShownLayers
/// largest layers hold at least half of the baseline's peak.
void Explanation::choose_rows() {
  const std::vector<MemoryShare>& layers = baseline_.at.by_layer;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < std::min(layers.size(), kShownLayers); ++i) largest += layers[i].bytes;
  rows_ = rows_of_layers(labels_, 2 * largest >= baseline_.at.bytes ? labels_.layers.size() : kShownLayers);

  const auto sum_by_row = [&](const MemoryAt& at) {
    std::vector<MemoryShare> sums(rows_.names.size());
    for (std::size_t row = 0; row < sums.size(); ++row) sums[row].group = static_cast<std::int32_t>(row);
    for (const MemoryShare& share : at.by_layer) {
      sums[rows_.row_of[share.group]].bytes += share.bytes;
      sums[rows_.row_of[share.group]].tensors += share.tensors;
    }
    std::erase_if(sums, [](const MemoryShare& sum) { return sum.tensors == 0; });
    std::stable_sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return sums;
  };
  baseline_.by_row = sum_by_row(baseline_.at);
  if (!schedule_) return;
  schedule_->by_row = sum_by_row(schedule_->at);
  std::vector<std::size_t> place(rows_.names.size(), SIZE_MAX);
  for (const RecomputedShare& share : recomputation_.by_layer) {
    const std::int32_t row = rows_.row_of[share.layer];
    if (place[row] == SIZE_MAX) {
      place[row] = recomputed_by_row_.size();
      recomputed_by_row_.push_back({.layer = row});
    }
    add_share(recomputed_by_row_[place[row]], share);
  }
  std::stable_sort(recomputed_by_row_.begin(), recomputed_by_row_.end(),
                   [](const auto& a, const auto& b) { return a.saved_at_baseline_peak > b.saved_at_baseline_peak; });
}

// --- JSON ----------------------------------------------------------------------------------------------------------

Json Explanation::json_of(const Side& side) const {
  const MemoryAt& at = side.at;
  if (at.step < 0) return nullptr;
  Json tensors = Json::array();
  for (std::size_t i = 0; i < std::min(at.tensors.size(), kListed); ++i) {
    const LiveTensor& tensor = at.tensors[i];
    tensors.push_back(
        {{"name", name_of(graph_, tensor)},
         {"node", tensor.node},
         {"output", tensor.value == core::kNoValue ? Json(nullptr) : Json(graph_.output_ref(tensor.value).output)},
         {"bytes", tensor.bytes},
         {"kind", to_string(tensor.kind)},
         {"layer", labels_.layers[tensor.layer]},
         {"first_step", tensor.first},
         {"last_step", tensor.last},
         {"next_read_step", step_json(tensor.next_read)},
         {"idle_steps", idle_steps(tensor, at.step)},
         {"recomputed", tensor.recomputed}});
    if (transfers_) tensors.back()["fetched"] = tensor.fetched;
  }
  Json json = {
      {"step", at.step},
      {"node", at.node},
      {"name", graph_.name(at.node)},
      {"bytes", at.bytes},
      {"tensor_count", at.tensors.size()},
      {"layer_count", at.by_layer.size()},
      {"by_kind", shares_json("kind", at.by_kind, [](std::int32_t kind) { return to_string(TensorKind(kind)); })},
      {"by_layer", shares_json("layer", at.by_layer, [&](std::int32_t layer) { return labels_.layers[layer]; })},
      {"tensors", std::move(tensors)}};
  if (transfers_) json["after_step"] = at.after;
  return json;
}

Json Explanation::recomputation_json() const {
  const AtBaselinePeak& at = recomputation_.at_baseline_peak;
  Json json{{"nodes", recomputation_.total.nodes}};
  add_savings(json, recomputation_.total, baseline_cost_);
  json["at_baseline_peak"] = at.node == core::kNoNode ? Json(nullptr)
                                                      : Json{{"node", at.node},
                                                             {"name", graph_.name(at.node)},
                                                             {"baseline_step", at.baseline_step},
                                                             {"schedule_step", at.schedule_step},
                                                             {"baseline_bytes", at.baseline_bytes},
                                                             {"recomputed_later_bytes", at.recomputed_later},
                                                             {"other_order_bytes", at.other_order},
                                                             {"held_more_bytes", at.held_more},
                                                             {"schedule_bytes", at.schedule_bytes}};
  if (transfers_ && at.node != core::kNoNode) json["at_baseline_peak"]["on_host_bytes"] = at.on_host;
  json["layer_count"] = recomputation_.by_layer.size();
  json["by_layer"] = Json::array();
  for (std::size_t i = 0; i < std::min(recomputation_.by_layer.size(), kListed); ++i) {
    const RecomputedShare& share = recomputation_.by_layer[i];
    Json layer{{"layer", labels_.layers[share.layer]}, {"nodes", share.nodes}};
    add_savings(layer, share, baseline_cost_);
    json["by_layer"].push_back(std::move(layer));
  }
  std::vector<std::int64_t> place(static_cast<std::size_t>(graph_.node_count()), -1);
  json["by_node"] = Json::array();
  for (std::size_t i = 0; i < std::min(recomputation_.nodes.size(), kListed); ++i) {
    const RecomputedNode& node = recomputation_.nodes[i];
    place[node.node] = static_cast<std::int64_t>(i);
    Json entry{{"name", graph_.name(node.node)},
               {"node", node.node},
               {"layer", labels_.layers[labels_.layer_of[node.node]]},
               {"bytes", node.bytes}};
    add_savings(entry, node, baseline_cost_);
    entry["away_steps"] = node.away_steps;
    entry["runs"] = Json::array();
    json["by_node"].push_back(std::move(entry));
  }
  for (const Recomputation& run : recomputation_.events) {
    if (place[run.node] < 0) continue;
    Json& runs = json["by_node"][place[run.node]]["runs"];
    if (runs.size() == kListedRuns) continue;
    runs.push_back({{"made_step", run.made},
                    {"dropped_after_step", run.dropped_after},
                    {"step", run.step},
                    {"first_use_step", step_json(run.first_use)}});
  }
  return json;
}

void Explanation::add_to(Json& json) const {
  json["peak"] = {
      {"kinds_known", labels_.kinds_known}, {"layers_known", labels_.layers_known}, {"baseline", json_of(baseline_)}};
  if (!schedule_) return;
  json["peak"]["schedule"] = json_of(*schedule_);
  json["recomputation"] = recomputation_json();
  if (transfers_) json["offload"] = offload_json();
}

// --- tables --------------------------------------------------------------------------------------------------------

std::string Explanation::kinds_text() const {
  std::vector<const Side*> sides = {&baseline_};
  if (schedule_) sides.push_back(&*schedule_);
  Rows rows = {{"at the peak", "baseline"}, {"step"}, {"node"}};
  if (schedule_) rows[0].push_back("schedule");
  std::vector<std::string> most = {"largest layers"};
  for (const Side* side : sides) {
    rows[1].push_back(fmt::format("{}{} of {}", side->at.after ? "after " : "", side->at.step, side->steps));
    rows[2].push_back(shortened(graph_.name(side->at.node)));
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::min(side->by_row.size(), kNamedLayers); ++i) {
      const MemoryShare& share = side->by_row[i];
      parts.push_back(
          fmt::format("{} {:.0f}%", shortened(rows_.names[share.group]), part_pct(share.bytes, side->at.bytes)));
    }
    most.push_back(fmt::format("{}", fmt::join(parts, ", ")));
  }
  for (std::int32_t kind = 0; kind < kTensorKinds; ++kind) {
    std::vector<std::string> row = {std::string(kind_words(TensorKind(kind)))};
    bool any = false;
    for (const Side* side : sides) {
      any = any || find_share(side->at.by_kind, kind) != nullptr;
      row.push_back(part_cell(side->at, side->at.by_kind, kind));
    }
    if (any) rows.push_back(std::move(row));
  }
  if (labels_.layers_known) rows.push_back(std::move(most));
  return format_table(rows, true);
}

std::string Explanation::layers_text() const {
  if (!labels_.layers_known) return "";
  std::vector<const Side*> sides = {&baseline_};
  if (schedule_) sides.push_back(&*schedule_);
  // Rows of single layers are sorted by their bytes in the baseline, so that the largest savings come first. Rows of
  // ranges stay in the order of the layers.
  std::vector<MemoryShare> shares = baseline_.by_row;
  if (shows_ranges())
    std::sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.group < b.group; });
  const std::size_t shown = shown_count(shares.size(), kShownLayers);
  Rows rows = {{"by layer", "baseline"}};
  if (schedule_) rows[0].push_back("schedule");
  std::array<std::int64_t, 2> listed = {0, 0};
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string> row = {shortened(rows_.names[shares[i].group])};
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const MemoryShare* share = find_share(sides[s]->by_row, shares[i].group);
      if (share != nullptr) listed[s] += share->bytes;
      row.push_back(part_cell(sides[s]->at, sides[s]->by_row, shares[i].group));
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::string> others = {"others"};
  bool any = shown < shares.size();
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const std::int64_t rest = sides[s]->at.bytes - listed[s];
    any = any || rest != 0;
    others.push_back(part_text(rest, sides[s]->at.bytes));
  }
  if (any) rows.push_back(std::move(others));
  return "\n" + format_table(rows, true);
}

std::string Explanation::tensors_text(const char* whose, const Side& side) const {
  const MemoryAt& at = side.at;
  Rows rows = {{fmt::format("largest at the {}'s peak", whose), "bytes", "kind", "made", "next read", "idle"}};
  for (std::size_t i = 0; i < std::min(at.tensors.size(), kShownTensors); ++i) {
    const LiveTensor& tensor = at.tensors[i];
    const std::int64_t idle = idle_steps(tensor, at.step);
    const char* again = tensor.fetched ? " (fetched)" : tensor.recomputed ? " (recomputed)" : "";
    rows.push_back({shortened(name_of(graph_, tensor)) + again, part_text(tensor.bytes, at.bytes),
                    std::string(to_string(tensor.kind)), fmt::format("step {}", tensor.first),
                    tensor.next_read >= 0 ? fmt::format("step {}", tensor.next_read) : "-",
                    idle > 0 ? fmt::format("{} steps", idle) : "in use"});
  }
  std::string text = "\n" + format_table(rows, true);
  if (at.tensors.size() > kShownTensors) text += fmt::format("and {} more\n", at.tensors.size() - kShownTensors);
  return text;
}

std::string Explanation::recomputation_text(bool all) const {
  const RecomputedShare& total = recomputation_.total;
  if (total.times == 0) return "recomputed  nothing\n";
  const auto cost = [&](std::int64_t extra) { return fmt::format("{:+.2f}%", part_pct(extra, baseline_cost_)); };
  std::vector<RecomputedShare> layers = recomputed_by_row_;
  if (!all) {
    std::vector<std::string> parts;
    const std::size_t named = labels_.layers_known ? shown_count(layers.size(), kNamedLayers) : 0;
    for (std::size_t i = 0; i < named; ++i) {
      parts.push_back(fmt::format("{} ({} for {})", shortened(rows_.names[layers[i].layer]),
                                  core::format_bytes(layers[i].saved_at_baseline_peak), cost(layers[i].extra_cost)));
    }
    if (named > 0 && named < layers.size()) parts.push_back(fmt::format("{} more", layers.size() - named));
    Rows lines = {{"recomputed",
                   fmt::format("{} times, {} nodes: extra cost {}, saves {} at the baseline's peak", total.times,
                               total.nodes, cost(total.extra_cost), core::format_bytes(total.saved_at_baseline_peak))}};
    if (named > 0) lines.push_back({"layers saving most", fmt::format("{}", fmt::join(parts, ", "))});
    return format_table(lines);
  }
  Rows rows = {{"recomputed", "nodes", "times", "cost", "saves at the baseline's peak", "at its own", "on average"}};
  const auto add_row = [&](std::string name, const RecomputedShare& share) {
    rows.push_back({std::move(name), std::to_string(share.nodes), std::to_string(share.times), cost(share.extra_cost),
                    core::format_bytes(share.saved_at_baseline_peak), core::format_bytes(share.saved_at_peak),
                    mean_text(share.saved_on_average)});
  };
  if (shows_ranges())
    std::sort(layers.begin(), layers.end(), [](const auto& a, const auto& b) { return a.layer < b.layer; });
  const std::size_t shown = shown_count(layers.size(), kShownLayers);
  RecomputedShare others;
  for (std::size_t i = 0; i < layers.size() && labels_.layers_known; ++i) {
    if (i < shown) {
      add_row(shortened(rows_.names[layers[i].layer]), layers[i]);
      continue;
    }
    add_share(others, layers[i]);
  }
  if (others.nodes > 0) add_row("others", others);
  add_row("all", total);
  const AtBaselinePeak& at = recomputation_.at_baseline_peak;
  Rows lines = {
      {fmt::format(
          "where the baseline peaks, at '{}', the schedule holds {} instead of {}:", shortened(graph_.name(at.node)),
          core::format_bytes(at.schedule_bytes), core::format_bytes(at.baseline_bytes))},
      {fmt::format("{} are recomputed later, {} are not made yet or no longer needed, {} are in memory only in the "
                   "schedule",
                   core::format_bytes(at.recomputed_later), core::format_bytes(at.other_order),
                   core::format_bytes(at.held_more))}};
  if (at.on_host > 0) lines.push_back({fmt::format("{} are on the host", core::format_bytes(at.on_host))});
  return "\n" + format_table(rows, true) + format_table(lines);
}

std::string Explanation::text(bool all) const {
  if (baseline_.at.step < 0) return "";
  std::string text = "\n" + kinds_text();
  if (all) {
    if (!labels_.kinds_known) text += "the graph does not say which of its nodes are forward and which backward\n";
    text += layers_text() + tensors_text("baseline", baseline_);
    if (schedule_) text += tensors_text("schedule", *schedule_);
  }
  if (schedule_) text += recomputation_text(all);
  if (transfers_) text += offload_text(all);
  return text;
}

}  // namespace cairn::report
