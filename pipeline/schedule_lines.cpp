#include "cairn/pipeline/internal/schedule_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "cairn/core/error.h"
#include "cairn/core/formats/support/transfers.h"
#include "cairn/core/support/line_reader.h"
#include "cairn/core/support/text.h"

namespace cairn::pipeline {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kMostLineBytes = std::size_t{256} << 20;
constexpr std::string_view kBlank = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool is_schedule(std::string_view line) { return !line.empty() && line.front() != '#'; }

std::string preview(std::string_view text) { return fmt::format("'{}'", core::shown_word(text)); }

/// Returns `value` as a NodeId. A number that does not fit becomes the largest NodeId, which is not the id of a node in
/// any graph.
core::NodeId to_node(std::int64_t value) {
  const bool fits =
      value >= std::numeric_limits<core::NodeId>::min() && value <= std::numeric_limits<core::NodeId>::max();
  return fits ? static_cast<core::NodeId>(value) : std::numeric_limits<core::NodeId>::max();
}

/// Appends the numbers in `text` to `steps`. The numbers are separated by white space or by one comma. If `commas` is
/// set, the comma is required, as in JSON. Returns what is wrong with the text, or an empty text.
std::string parse_numbers(std::string_view text, bool commas, std::vector<core::NodeId>& steps) {
  std::size_t at = text.find_first_not_of(kBlank);
  while (at != std::string_view::npos) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    std::size_t next = static_cast<std::size_t>(end - text.data());
    const bool ends = next == text.size() || text[next] == ',' || kBlank.find(text[next]) != std::string_view::npos;
    if (error == std::errc::invalid_argument || !ends) {
      const std::string_view word = text.substr(at, text.find_first_of(", \t", at + 1) - at);
      return fmt::format("{} is not a node number", preview(word));
    }
    steps.push_back(error == std::errc::result_out_of_range ? to_node(std::numeric_limits<std::int64_t>::max())
                                                            : to_node(value));
    next = text.find_first_not_of(kBlank, next);
    if (next == std::string_view::npos) return {};
    const bool comma = text[next] == ',';
    if (commas && !comma) return fmt::format("a comma is missing before {}", preview(text.substr(next)));
    at = comma ? text.find_first_not_of(kBlank, next + 1) : next;
    if (at == std::string_view::npos) return "it ends with a comma; is it truncated?";
  }
  return {};
}

std::string parse_object(std::string_view text, const core::Graph& graph, std::string_view fingerprint,
                         core::Schedule& schedule) {
  const auto object = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (object.is_discarded()) return "it is not valid JSON; is it truncated?";
  const auto key = [&](const char* name) { return object.contains(name) ? object[name] : nlohmann::json(); };
  if (const auto format = key("format"); !format.is_null() && format != "cairn.schedule")
    return fmt::format("its \"format\" is {}, not cairn.schedule", preview(format.dump()));
  if (const auto version = key("version"); !version.is_null() && version != 1)
    return fmt::format("it has version {}, but only version 1 can be read", preview(version.dump()));
  if (const auto made_for = key("graph"); !made_for.is_null() && made_for != std::string(fingerprint))
    return fmt::format("it was made for another graph (fingerprint {}, but this one has {})", preview(made_for.dump()),
                       fingerprint);
  const auto list = object.find("steps");
  if (list == object.end() || !list->is_array()) return "it has no list \"steps\"";
  for (const auto& step : *list) {
    std::int64_t node = 0;
    const core::NumberFault fault =
        step.is_number() ? core::parse_whole(step.dump(), node) : core::NumberFault::no_number;
    if (fault == core::NumberFault::no_number || fault == core::NumberFault::fraction)
      return fmt::format("{} is not a node number", preview(step.dump()));
    schedule.steps.push_back(
        to_node(fault == core::NumberFault::none ? node : std::numeric_limits<std::int64_t>::max()));
  }
  if (const auto transfers = object.find("transfers"); transfers != object.end()) {
    try {
      schedule.transfers = core::formats::read_transfers(*transfers, graph, {.origin = "its transfers"});
    } catch (const core::InputError& error) {
      return error.what();
    }
  }
  return {};
}

}  // namespace

std::vector<LineBatch::Line> LineBatch::schedules() const {
  if (one_object) return {{first_line, trimmed(text)}};
  std::vector<Line> lines;
  std::int64_t number = first_line;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(begin, end - begin));
    if (is_schedule(line)) lines.push_back({number, line});
    begin = end + 1;
  }
  return lines;
}

ScheduleLines::ScheduleLines(const std::string& path, std::int64_t most_lines, const std::atomic<bool>* stop)
    : file_(path, {.stop = stop}), most_lines_(most_lines) {}

bool ScheduleLines::read_more() {
  if (ended_) return false;
  try {
    ended_ = !file_.read(pending_);
  } catch (const core::InterruptedError&) {
    ended_ = interrupted_ = true;
  }
  return !ended_;
}

std::size_t ScheduleLines::line_end(std::size_t begin) {
  for (std::size_t from = begin;;) {
    const std::size_t end = pending_.find('\n', from);
    if (end != std::string::npos) return end + 1;
    from = pending_.size();
    if (from - begin > kMostLineBytes)
      throw core::InputError(fmt::format(
          "{}: line {}: is longer than 256 MiB; give one schedule a line", file_.name(),
          line_ + std::count(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(begin), '\n')));
    // An interrupt may have cut the last line, and the part of it that was read may look like a schedule.
    if (!read_more()) return interrupted_ ? begin : pending_.size();
  }
}

bool ScheduleLines::begins_object_over_lines() {
  for (std::size_t begin = 0;;) {
    const std::size_t end = line_end(begin);
    if (end == begin) return false;
    const std::string_view line = trimmed(std::string_view(pending_).substr(begin, end - begin));
    if (is_schedule(line)) return line.front() == '{' && line.back() != '}';
    begin = end;
  }
}

bool ScheduleLines::next(LineBatch& batch) {
  batch = {};
  if (!started_) {
    started_ = true;
    line_end(0);
    if (pending_.starts_with("\xEF\xBB\xBF")) pending_.erase(0, 3);
    batch.one_object = begins_object_over_lines();
  }
  std::size_t end = 0;
  std::int64_t lines = 0;
  while (batch.one_object || (lines < most_lines_ && end < kBatchBytes)) {
    const std::size_t next = line_end(end);
    if (next == end) break;
    if (next > kMostLineBytes)
      throw core::InputError(fmt::format("{}: the schedule is longer than 256 MiB", file_.name()));
    end = next;
    ++lines;
  }
  batch.first_line = line_;
  batch.text = pending_.substr(0, end);
  if (batch.one_object) batch.text.erase(0, batch.text.find('{'));  // drops comments before the object
  pending_.erase(0, end);
  line_ += lines;
  return end > 0;
}

std::string parse_schedule_line(std::string_view line, const core::Graph& graph, std::string_view fingerprint,
                                core::Schedule& schedule) {
  schedule.steps.clear();
  schedule.transfers = {};
  if (line.front() == '{') return parse_object(line, graph, fingerprint, schedule);
  if (line.front() != '[') return parse_numbers(line, false, schedule.steps);
  if (line.back() != ']') return "its list has no ] at the end; is it truncated?";
  return parse_numbers(line.substr(1, line.size() - 2), true, schedule.steps);
}

}  // namespace cairn::pipeline
