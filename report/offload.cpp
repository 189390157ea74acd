#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "cairn/core/cost_unit.h"
#include "cairn/core/support/text.h"
#include "cairn/report/support/explanation.h"
#include "cairn/report/support/words.h"

// Implements the part of Explanation that is about transfers between device memory and host memory.
namespace cairn::report {
namespace {

constexpr std::size_t kShownRows = 12, kNamedRows = 3, kShownAbsences = 8, kShownWaits = 8, kNameColumns = 48;

/// Returns the `most` items with the largest measure(item), in descending order of measure(item).
template <class T, class Measure>
std::vector<T> largest_of(std::vector<T> items, std::size_t most, const Measure& measure) {
  std::ranges::stable_sort(items, [&](const T& a, const T& b) { return measure(a) > measure(b); });
  if (items.size() > most) items.resize(most);
  return items;
}

std::string more_text(std::size_t count, std::size_t shown) {
  return count > shown ? fmt::format("and {} more\n", count - shown) : "";
}

}  // namespace

std::vector<Explanation::OffloadedShare> Explanation::offloaded_by(
    const std::vector<std::int32_t>& group_of_layer) const {
  std::vector<OffloadedShare> shares;
  for (const Absence& absence : transfers_->absences) {
    const std::int32_t group = group_of_layer[labels_.layer_of[graph_.producer(absence.value)]];
    auto place = std::ranges::find(shares, group, &OffloadedShare::layer);
    if (place == shares.end()) place = shares.insert(shares.end(), {.layer = group});
    ++place->times;
    place->bytes += absence.bytes;
    place->idle += absence.idle;
    place->away += absence.away;
  }
  std::ranges::stable_sort(shares, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return shares;
}

Json Explanation::absence_json(const Absence& absence) const {
  const core::NodeId node = graph_.producer(absence.value);
  const auto span_json = [](const core::Span& span) { return Json{{"begin", span.begin}, {"end", span.end}}; };
  return {{"name", graph_.value_name(absence.value)},
          {"node", node},
          {"output", graph_.output_ref(absence.value).output},
          {"layer", labels_.layers[labels_.layer_of[node]]},
          {"bytes", absence.bytes},
          {"evict", absence.evict},
          {"fetch", absence.fetch},
          {"last_use_step", absence.used},
          {"leaves_step", absence.leaves},
          {"returns_step", absence.returns},
          {"next_use_step", absence.needed < moved_.length() ? Json(absence.needed) : Json(nullptr)},
          {"evict_time", span_json(transfers_->times.evicts[absence.evict])},
          {"fetch_time", span_json(transfers_->times.fetches[absence.fetch])},
          {"idle", absence.idle},
          {"away", absence.away}};
}

Json Explanation::wait_json(const CopyWait& wait) const {
  const bool end = wait.step == moved_.length();
  return {{"step", end ? Json(nullptr) : Json(wait.step)},
          {"name", end ? Json(nullptr) : Json(graph_.name(moved_.steps[wait.step]))},
          {"time", wait.time},
          {"value", graph_.value_name(copied_value(moved_, wait.evict, wait.fetch))},
          {"direction", wait.evict >= 0 ? "host" : "device"},
          {"index", std::max(wait.evict, wait.fetch)}};
}

Json Explanation::offload_json() const {
  const TransferSummary& summary = *transfers_;
  const auto side = [](const LinkUse& use) {
    return Json{{"copies", use.copies}, {"bytes", use.bytes}, {"busy", use.busy}};
  };
  std::vector<std::int32_t> each(labels_.layers.size());
  std::iota(each.begin(), each.end(), 0);
  Json layers = Json::array(), values = Json::array(), waits = Json::array();
  for (const OffloadedShare& share : largest_of(offloaded_by(each), kListed, [](const auto& s) { return s.bytes; })) {
    layers.push_back({{"layer", labels_.layers[share.layer]},
                      {"times", share.times},
                      {"bytes", share.bytes},
                      {"idle", share.idle},
                      {"away", share.away}});
  }
  for (const Absence& one : largest_of(summary.absences, kListed, [](const Absence& a) { return a.bytes; }))
    values.push_back(absence_json(one));
  for (const CopyWait& one : largest_of(summary.waits, kListed, [](const CopyWait& w) { return w.time; }))
    waits.push_back(wait_json(one));
  return {{"to_host", side(summary.to_host)}, {"to_device", side(summary.to_device)},
          {"waiting", summary.times.waiting}, {"by_layer", std::move(layers)},
          {"by_value", std::move(values)},    {"wait_count", summary.waits.size()},
          {"waits", std::move(waits)}};
}

std::string Explanation::absences_text() const {
  const auto cost = [&](std::int64_t time) { return core::cost_text(time, graph_.cost_unit()); };
  Rows rows = {{"largest on the host", "bytes", "leaves", "returns", "idle", "off the device"}};
  const auto shown = largest_of(transfers_->absences, kShownAbsences, [](const Absence& a) { return a.bytes; });
  for (const Absence& one : shown) {
    rows.push_back({core::abridged(graph_.value_name(one.value), kNameColumns), core::format_bytes(one.bytes),
                    fmt::format("before step {}", one.leaves), fmt::format("before step {}", one.returns),
                    cost(one.idle), cost(one.away)});
  }
  return "\n" + format_table(rows, true) + more_text(transfers_->absences.size(), shown.size());
}

std::string Explanation::waits_text() const {
  if (transfers_->waits.empty()) return "no step waits for a copy\n";
  const std::int64_t waiting = transfers_->times.waiting;
  Rows rows = {{"longest waits", "waits for", "time", "of all waits"}};
  const auto shown = largest_of(transfers_->waits, kShownWaits, [](const CopyWait& w) { return w.time; });
  for (const CopyWait& one : shown) {
    const bool end = one.step == moved_.length();
    const std::string step =
        end ? "the end" : fmt::format("step {}, {}", one.step, graph_.name(moved_.steps[one.step]));
    rows.push_back({core::abridged(step, kNameColumns),
                    core::abridged(copy_name(graph_, moved_, one.evict, one.fetch), kNameColumns),
                    core::cost_text(one.time, graph_.cost_unit()),
                    fmt::format("{:.1f}%", 100 * fraction(one.time, waiting))});
  }
  return "\n" + format_table(rows, true) + more_text(transfers_->waits.size(), shown.size());
}

std::string Explanation::offload_text(bool all) const {
  const TransferSummary& summary = *transfers_;
  if (summary.absences.empty()) return "offloaded  nothing\n";
  std::vector<OffloadedShare> rows_of = offloaded_by(rows_.row_of);
  if (!all) {
    std::vector<std::string> parts;
    const std::size_t named = labels_.layers_known ? std::min(rows_of.size(), kNamedRows) : 0;
    for (std::size_t i = 0; i < named; ++i)
      parts.push_back(fmt::format("{} ({})", core::abridged(rows_.names[rows_of[i].layer], kNameColumns),
                                  core::format_bytes(rows_of[i].bytes)));
    if (named > 0 && named < rows_of.size()) parts.push_back(fmt::format("{} more", rows_of.size() - named));
    Rows lines = {
        {"offloaded", fmt::format("{} tensor{}, {} moved to the host, {} back", summary.to_host.copies,
                                  summary.to_host.copies == 1 ? "" : "s", core::format_bytes(summary.to_host.bytes),
                                  core::format_bytes(summary.to_device.bytes))}};
    if (named > 0) lines.push_back({"layers moving most", fmt::format("{}", fmt::join(parts, ", "))});
    return format_table(lines);
  }
  const auto cost = [&](std::int64_t time) { return core::cost_text(time, graph_.cost_unit()); };
  Rows rows = {{"offloaded", "times", "bytes", "idle for", "off the device for", "of idle"}};
  const auto add = [&](const std::string& name, const OffloadedShare& share) {
    rows.push_back({core::abridged(name, kNameColumns), std::to_string(share.times), core::format_bytes(share.bytes),
                    cost(share.idle), cost(share.away),
                    fmt::format("{:.1f}%", 100 * fraction(share.away, share.idle))});
  };
  OffloadedShare others, total;
  const std::size_t shown = labels_.layers_known ? std::min(rows_of.size(), kShownRows) : 0;
  for (std::size_t i = 0; i < rows_of.size(); ++i) {
    for (OffloadedShare* sum : {&total, i < shown ? nullptr : &others}) {
      if (sum == nullptr) continue;
      sum->times += rows_of[i].times;
      sum->bytes += rows_of[i].bytes;
      sum->idle += rows_of[i].idle;
      sum->away += rows_of[i].away;
    }
    if (i < shown) add(rows_.names[rows_of[i].layer], rows_of[i]);
  }
  if (labels_.layers_known && others.times > 0) add("others", others);
  add("all", total);
  return "\n" + format_table(rows, true) + absences_text() + waits_text();
}

}  // namespace cairn::report
