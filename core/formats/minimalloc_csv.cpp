#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <unordered_set>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/internal/json.h"
#include "cairn/core/text.h"

namespace cairn::core {
namespace {

constexpr std::array<std::string_view, 4> kColumns{"id", "lower", "upper", "size"};
enum Column : std::size_t { kId, kLower, kUpper, kSize };

struct Row {
  std::int64_t line = 0;  ///< where it begins, from 1
  std::vector<std::string> fields;
};

[[noreturn]] void fail(const std::string& origin, std::int64_t line, std::string_view message) {
  throw InputError(fmt::format("{}: line {}: {}", origin, line, message));
}

/// Reads one row after the other: commas, quotes doubled inside quotes, line ends of any system, blank lines skipped.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  std::size_t position() const { return at_; }
  /// False at the end of the text.
  bool next(Row& row) {
    while (at_ < text_.size()) {
      row = {.line = line_, .fields = {}};
      do {
        row.fields.push_back(field());
      } while (at_ < text_.size() && text_[at_] == ',' && ++at_);
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
      if (!at_field_end()) fail(origin_, line_, "there is text behind a closing quote; separate columns with commas");
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

std::array<std::size_t, kColumns.size()> find_columns(const Row& header, const std::string& origin) {
  std::array<std::size_t, kColumns.size()> columns{};
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const auto found = std::find(header.fields.begin(), header.fields.end(), kColumns[c]);
    if (found == header.fields.end()) {
      fail(origin, header.line,
           fmt::format("the column '{}' is missing; the first line must name the columns {}", kColumns[c],
                       fmt::join(kColumns, ", ")));
    }
    if (std::find(found + 1, header.fields.end(), kColumns[c]) != header.fields.end()) {
      fail(origin, header.line, fmt::format("the column '{}' stands twice", kColumns[c]));
    }
    columns[c] = static_cast<std::size_t>(found - header.fields.begin());
  }
  return columns;
}

std::int64_t to_number(const std::string& text, std::string_view column, const Row& row, const std::string& origin) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, value) != std::from_chars_result{end, std::errc()}) {
    fail(origin, row.line, fmt::format("{} must be an integer of at most 63 bits, not '{}'", column, text));
  }
  return value;
}

std::string csv_field(const std::string& text) {
  if (!text.empty() && text.find_first_of(",\"\r\n \t") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::string& id, std::int64_t lower, std::int64_t upper, std::int64_t size,
                     std::int64_t offset) {
  return fmt::format("{},{},{},{},{}\n", csv_field(id), lower, upper, size, offset);
}

constexpr std::int64_t kBytesLimit = std::int64_t{1} << 62;
constexpr std::string_view kHeader = "id,lower,upper,size,offset\n";

}  // namespace

std::vector<BufferSpec> load_minimalloc_csv(const std::string& path, const Limit& limit) {
  return parse_minimalloc_csv(read_file(path), path, limit);
}

std::vector<BufferSpec> parse_minimalloc_csv(std::string_view text, const std::string& origin, const Limit& limit) {
  formats::ReadWatch watch(limit, origin);
  CsvReader reader(text, origin);
  Row row;
  if (!reader.next(row)) throw InputError(fmt::format("{}: is empty", origin));
  const auto columns = find_columns(row, origin);
  const std::size_t width = row.fields.size();

  // Columns that would change what a valid placement is: honoured or refused, never ignored.
  const auto optional_column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(row.fields.begin(), row.fields.end(), name) - row.fields.begin());
  };
  const std::size_t alignment = optional_column("alignment"), gaps = optional_column("gaps");

  std::vector<BufferSpec> specs;
  std::unordered_set<std::string> ids;
  std::int64_t bytes = 0;
  while (reader.next(row)) {
    watch.read(reader.position());
    if (row.fields.size() != width) {
      fail(origin, row.line, fmt::format("has {} columns, but the first line names {}", row.fields.size(), width));
    }
    if (alignment < width && !row.fields[alignment].empty() && row.fields[alignment] != "1") {
      fail(origin, row.line,
           fmt::format("an alignment of {} for one buffer is not supported; remove the column and use --alignment",
                       row.fields[alignment]));
    }
    if (gaps < width && !row.fields[gaps].empty()) {
      fail(origin, row.line, "gaps are not supported; split the buffer, or remove the column");
    }
    const auto number = [&](Column c) { return to_number(row.fields[columns[c]], kColumns[c], row, origin); };
    BufferSpec spec{
        .id = row.fields[columns[kId]], .lower = number(kLower), .upper = number(kUpper), .size = number(kSize)};
    if (spec.lower < 0) fail(origin, row.line, fmt::format("lower is {}, but times begin at 0", spec.lower));
    if (spec.upper <= spec.lower) {
      fail(origin, row.line,
           fmt::format("upper ({}) must be above lower ({}), for it is exclusive", spec.upper, spec.lower));
    }
    if (spec.size < 0) fail(origin, row.line, fmt::format("size is {}, but must not be negative", spec.size));
    if (spec.size > kBytesLimit - bytes) fail(origin, row.line, "the sizes up to here add up to more than 2^62 bytes");
    bytes += spec.size;
    if (!ids.insert(spec.id).second) {
      fail(origin, row.line, fmt::format("the id '{}' stands twice; give each buffer its own", spec.id));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string minimalloc_csv(const std::vector<BufferSpec>& specs, const Plan& plan) {
  std::vector<std::int64_t> offsets(specs.size(), 0);  // what has no bytes may have no buffer
  for (const Buffer& buffer : plan.buffers) offsets.at(static_cast<std::size_t>(buffer.node)) = buffer.offset;
  std::string text(kHeader);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    text += csv_line(specs[i].id, specs[i].lower, specs[i].upper, specs[i].size, offsets[i]);
  }
  return text;
}

std::string plan_to_minimalloc_csv(const Graph& graph, const Plan& plan) {
  // Where an in-place buffer takes over a storage, MiniMalloc must see the old buffer end first.
  std::set<std::pair<ValueId, std::int64_t>> taken;
  for (const Buffer& buffer : plan.buffers) taken.emplace(graph.value(buffer.alias_of), buffer.first);
  std::string text(kHeader);
  for (const Buffer& buffer : plan.buffers) {
    const ValueId x = graph.value({buffer.node, buffer.output});
    const bool handed_over = !buffer.scratch && taken.contains({x, buffer.last});
    const std::string id = buffer.scratch ? fmt::format("{}@{}/scratch", graph.name(buffer.node), buffer.first)
                                          : fmt::format("{}@{}", graph.value_name(x), buffer.first);
    text += csv_line(id, buffer.first, buffer.last + (handed_over ? 0 : 1), buffer.size, buffer.offset);
  }
  return text;
}

}  // namespace cairn::core
