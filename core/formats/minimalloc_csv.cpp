#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/sum_limit.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

enum Column : std::uint8_t { kId, kLower, kUpper, kSize, kAlignment, kOffset, kHint, kGaps, kColumnCount };
constexpr std::array<std::string_view, kColumnCount> kColumns{"id",        "lower",  "upper", "size",
                                                              "alignment", "offset", "hint",  "gaps"};
constexpr std::size_t kRequired = kSize + 1;  ///< number of columns that a file must have

/// Older names of MiniMalloc's columns. If the upper time is named `end`, the ends of lifetimes and gaps are inclusive.
constexpr std::string_view kInclusiveUpper = "end";
constexpr std::array<std::pair<std::string_view, Column>, 5> kOlderNames{
    {{"buffer", kId}, {"buffer_id", kId}, {"start", kLower}, {"begin", kLower}, {kInclusiveUpper, kUpper}}};

struct Row {
  std::int64_t line = 0;  ///< line in which the row begins, counted from 1
  std::vector<std::string> fields;
};

[[noreturn]] void fail(const std::string& origin, std::int64_t line, std::string_view message) {
  throw InputError(fmt::format("{}: line {}: {}", origin, line, message));
}

/// Reads rows one by one. Fields are separated by commas. A quoted field can contain a quote, written as two quotes.
/// Lines may end with LF, CR or CR LF. Blank lines are skipped.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  std::size_t position() const { return at_; }
  bool next(Row& row) {
    while (at_ < text_.size()) {
      row = {.line = line_, .fields = {}};
      row.fields.push_back(field());
      while (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        row.fields.push_back(field());
      }
      skip_line_end();
      if (row.fields.size() > 1 || !row.fields[0].empty()) return true;
    }
    return false;
  }

 private:
  std::string field() {
    skip_blanks();
    std::string value;
    if (at_ < text_.size() && text_[at_] == '"') {
      value = quoted();
      skip_blanks();
      if (!at_field_end()) fail(origin_, line_, "there is text after a closing quote; separate columns with commas");
      return value;
    }
    while (!at_field_end()) value += text_[at_++];
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.pop_back();
    return value;
  }

  std::string quoted() {
    const std::int64_t opened = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"' && text_.substr(at_ + 1, 1) != "\"") {
        ++at_;
        return value;
      }
      if (text_[at_] == '"') ++at_;
      if (text_[at_] == '\n') ++line_;
      value += text_[at_];
    }
    fail(origin_, opened, "a quote is opened, but never closed");
  }

  bool at_field_end() const {
    return at_ >= text_.size() || text_[at_] == ',' || text_[at_] == '\n' || text_[at_] == '\r';
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  void skip_line_end() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

/// The header of the file. For each column, it stores the column's position among the fields of a row and the column's
/// name in the file.
class Columns {
 public:
  Columns(const Row& header, const std::string& origin, formats::Notices& notices) : origin_(origin) {
    at_.fill(kNone);
    for (std::size_t field = 0; field < header.fields.size(); ++field) {
      const auto [column, name] = column_of(header.fields[field]);
      if (column == kColumnCount) {
        const std::string& unknown = header.fields[field];
        notices.add(ReadWarning::Kind::unknown_key, unknown, [&] {
          return fmt::format("{}: line {}: the column '{}' is unknown and ignored{}", origin, header.line,
                             printable(unknown), did_you_mean(unknown, kColumns));
        });
        continue;
      }
      if (at_[column] != kNone) {
        fail(origin, header.line,
             name == names_[column]
                 ? fmt::format("the column '{}' occurs twice", name)
                 : fmt::format("the columns '{}' and '{}' are the same; remove one", names_[column], name));
      }
      at_[column] = field;
      names_[column] = name;
    }
    for (std::size_t column = 0; column < kRequired; ++column) {
      if (at_[column] == kNone) {
        fail(origin, header.line,
             fmt::format("the column '{}' is missing; the first line must name the columns {}", kColumns[column],
                         fmt::join(kColumns.begin(), kColumns.begin() + kRequired, ", ")));
      }
    }
    inclusive_ = names_[kUpper] == kInclusiveUpper;
  }

  std::string_view text(const Row& row, Column column) const {
    return at_[column] == kNone ? std::string_view() : std::string_view(row.fields[at_[column]]);
  }
  std::int64_t number(const Row& row, Column column) const { return number(row, names_[column], text(row, column)); }
  std::optional<std::int64_t> number_if_any(const Row& row, Column column) const {
    if (text(row, column).empty()) return std::nullopt;
    return number(row, column);
  }
  /// Returns the half-open range [lower, end). `end` is `upper`, or `upper` + 1 if ends are inclusive in the file.
  /// Throws if the range is empty; the message begins with `what`.
  std::pair<std::int64_t, std::int64_t> times(const Row& row, std::string_view what, std::int64_t lower,
                                              std::int64_t upper) const {
    if (inclusive_ && upper == std::numeric_limits<std::int64_t>::max())
      fail(origin_, row.line, fmt::format("{}the time {} is too late", what, upper));
    if (upper + (inclusive_ ? 1 : 0) > lower) return {lower, upper + (inclusive_ ? 1 : 0)};
    fail(origin_, row.line,
         inclusive_
             ? fmt::format("{}{} ({}) must not be below {} ({})", what, names_[kUpper], upper, names_[kLower], lower)
             : fmt::format("{}{} ({}) must be above {} ({}), because it is exclusive", what, names_[kUpper], upper,
                           names_[kLower], lower));
  }
  /// Parses "5-7 9-12" into {5, 7}, {9, 12}. The result ascends, and ranges that overlap or touch are merged. Throws if
  /// a range is not strictly inside the lifetime [lower, upper).
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const Row& row, std::int64_t lower,
                                                          std::int64_t upper) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
    std::string_view rest = text(row, kGaps);
    while (true) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (rest.empty()) break;
      const std::string_view gap = rest.substr(0, rest.find(' '));
      rest.remove_prefix(gap.size());
      const std::string what = fmt::format("gap '{}': ", gap);
      if (gap.find('@') != std::string_view::npos)
        fail(origin_, row.line, what + "windows of addresses in gaps are not supported; remove the text after '@'");
      const std::size_t dash = gap.find('-');
      if (dash == std::string_view::npos)
        fail(origin_, row.line, what + "must be two times with a '-' between them, as 5-7");
      gaps.push_back(times(row, what, number(row, what + "its start", gap.substr(0, dash)),
                           number(row, what + "its end", gap.substr(dash + 1))));
      if (gaps.back().first <= lower || gaps.back().second >= upper)
        fail(origin_, row.line,
             what + fmt::format("must lie inside the lifetime {}-{} and touch neither end of it", lower, upper));
    }
    std::sort(gaps.begin(), gaps.end());
    std::size_t kept = 0;
    for (const auto& gap : gaps) {  // merges gaps that overlap or touch
      if (kept > 0 && gap.first <= gaps[kept - 1].second) {
        gaps[kept - 1].second = std::max(gaps[kept - 1].second, gap.second);
      } else {
        gaps[kept++] = gap;
      }
    }
    gaps.resize(kept);
    return gaps;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// Returns the column named `name`, and the name as a view into kColumns or kOlderNames.
  static std::pair<std::size_t, std::string_view> column_of(std::string_view name) {
    for (const auto& [older, column] : kOlderNames) {
      if (older == name) return {column, older};
    }
    const auto found = std::find(kColumns.begin(), kColumns.end(), name);
    const auto column = static_cast<std::size_t>(found - kColumns.begin());
    return {column, found == kColumns.end() ? std::string_view() : *found};
  }

  std::int64_t number(const Row& row, std::string_view what, std::string_view text) const {
    std::int64_t value = 0;
    const NumberFault fault = parse_whole(text, value);
    if (fault == NumberFault::too_large)
      fail(origin_, row.line, fmt::format("{} is {}, which does not fit into 64 bits", what, text));
    if (fault != NumberFault::none)
      fail(origin_, row.line, fmt::format("{} must be a whole number, not '{}'", what, text));
    return value;
  }

  const std::string& origin_;
  std::array<std::size_t, kColumnCount> at_{};
  std::array<std::string_view, kColumnCount> names_;  ///< names of the columns as in the file's header
  bool inclusive_ = false;                            ///< whether a range of times in the file includes its end
};

std::string csv_field(const std::string& text) {
  if (!text.empty() && text.find_first_of(",\"\r\n \t") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::string& id, std::int64_t lower, std::int64_t upper, std::int64_t size) {
  return fmt::format("{},{},{},{}", csv_field(id), lower, upper, size);
}

std::string gaps_text(const BufferSpec& spec) {
  std::string text;
  for (const auto& [lower, upper] : spec.gaps) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", lower, upper);
  return text;
}

constexpr std::int64_t kMostAlignment = std::int64_t{1} << 30;

}  // namespace

std::vector<BufferSpec> load_minimalloc_csv(const std::string& path, const ReadOptions& options) {
  return parse_minimalloc_csv(read_file(path, options), input_name(path), options);
}

std::vector<BufferSpec> parse_minimalloc_csv(std::string_view text, const std::string& origin,
                                             const ReadOptions& options) {
  formats::Notices notices(options.warn);
  formats::ReadWatch watch(options, origin, text.size());
  CsvReader reader(text, origin);
  Row row;
  if (!reader.next(row)) throw InputError(fmt::format("{}: is empty", origin));
  const Columns columns(row, origin, notices);
  const std::size_t width = row.fields.size();

  std::vector<BufferSpec> specs;
  std::unordered_set<std::string> ids;
  std::int64_t bytes = 0;
  while (reader.next(row)) {
    watch.read(reader.position());
    const auto refuse = [&](std::string_view message) { fail(origin, row.line, message); };
    if (row.fields.size() != width) {
      refuse(fmt::format("has {} columns, but the first line names {}", row.fields.size(), width));
    }
    BufferSpec spec{.id = std::string(columns.text(row, kId)), .size = columns.number(row, kSize)};
    std::tie(spec.lower, spec.upper) = columns.times(row, "", columns.number(row, kLower), columns.number(row, kUpper));
    if (spec.lower < 0) refuse(fmt::format("lower is {}, but times begin at 0", spec.lower));
    if (spec.size < 0) refuse(fmt::format("size is {}, but must not be negative", spec.size));
    if (spec.size > kSumLimit - bytes) refuse("the sizes up to here add up to more than 2^62 bytes");
    bytes += spec.size;
    spec.alignment = columns.number_if_any(row, kAlignment).value_or(1);
    if (spec.alignment < 1 || spec.alignment > kMostAlignment)
      refuse(fmt::format("alignment is {}, but must be between 1 and 2^30", spec.alignment));
    spec.offset = columns.number_if_any(row, kOffset);
    if (spec.offset && (*spec.offset < 0 || *spec.offset > kSumLimit - spec.size))
      refuse(fmt::format("offset is {}, but the buffer must lie between 0 and 2^62", *spec.offset));
    if (spec.offset && *spec.offset % spec.alignment != 0)
      refuse(fmt::format("offset {} is not a multiple of the alignment {}", *spec.offset, spec.alignment));
    spec.hint = columns.number_if_any(row, kHint);
    if (spec.hint && *spec.hint < 0) spec.hint.reset();  // MiniMalloc writes -1 if a buffer has no hint
    spec.gaps = columns.gaps(row, spec.lower, spec.upper);
    if (!ids.insert(spec.id).second) refuse(fmt::format("two buffers have the id '{}'; give each its own", spec.id));
    specs.push_back(std::move(spec));
  }
  notices.tell();
  return specs;
}

std::string minimalloc_csv(const std::vector<BufferSpec>& specs, const Plan& plan) {
  std::vector<std::int64_t> offsets(specs.size(), 0);  // a buffer of 0 bytes may be missing from the plan
  for (const Buffer& buffer : plan.buffers) offsets.at(static_cast<std::size_t>(buffer.node)) = buffer.offset;
  const bool alignments = std::any_of(specs.begin(), specs.end(), [](const BufferSpec& s) { return s.alignment != 1; });
  const bool gaps = std::any_of(specs.begin(), specs.end(), [](const BufferSpec& s) { return !s.gaps.empty(); });
  std::string text =
      fmt::format("id,lower,upper,size{}{},offset\n", alignments ? ",alignment" : "", gaps ? ",gaps" : "");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    text += csv_line(specs[i].id, specs[i].lower, specs[i].upper, specs[i].size);
    if (alignments) text += fmt::format(",{}", specs[i].alignment);
    if (gaps) text += "," + gaps_text(specs[i]);
    text += fmt::format(",{}\n", offsets[i]);
  }
  return text;
}

std::string plan_to_minimalloc_csv(const Graph& graph, const Plan& plan) {
  // MiniMalloc does not know that buffers can share storage. If an in-place buffer takes over all bytes of another
  // buffer, the other buffer is therefore written as if it ended before the step at which the in-place buffer begins.
  // If the in-place buffer is smaller, it is written as if it began after that step, at which the other buffer still
  // needs all of its bytes.
  std::map<std::pair<ValueId, std::int64_t>, std::int64_t> input_size;  // by the buffer's value and last step
  for (const Buffer& buffer : plan.buffers) {
    if (!buffer.scratch) input_size[{graph.value({buffer.node, buffer.output}), buffer.last}] = buffer.size;
  }
  std::set<std::pair<ValueId, std::int64_t>> handed_over;
  const auto taken = [&](const Buffer& buffer) { return std::pair(graph.value(buffer.alias_of), buffer.first); };
  const auto is_smaller = [&](const Buffer& buffer) {
    const auto input = input_size.find(taken(buffer));
    return buffer.alias_of != OutputRef() && input != input_size.end() && buffer.size < input->second;
  };
  for (const Buffer& buffer : plan.buffers) {
    if (!is_smaller(buffer)) handed_over.insert(taken(buffer));
  }
  std::vector<BufferSpec> specs;
  Plan written;
  for (const Buffer& buffer : plan.buffers) {
    const ValueId x = graph.value({buffer.node, buffer.output});
    const bool ends_early = !buffer.scratch && handed_over.contains({x, buffer.last});
    BufferSpec spec{buffer.scratch ? fmt::format("{}@{}/scratch", graph.name(buffer.node), buffer.first)
                                   : fmt::format("{}@{}", graph.value_name(x), buffer.first),
                    buffer.first + (is_smaller(buffer) ? 1 : 0), buffer.last + (ends_early ? 0 : 1), buffer.size,
                    plan.alignment};
    if (spec.lower >= spec.upper) continue;  // its bytes are those of other buffers in its whole lifetime
    written.buffers.push_back({.node = static_cast<NodeId>(specs.size()), .offset = buffer.offset});
    specs.push_back(std::move(spec));
  }
  return minimalloc_csv(specs, written);
}

}  // namespace cairn::core
