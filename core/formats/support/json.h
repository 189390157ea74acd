#pragma once

// This header declares the types and functions that the readers and writers of JSON files share. It is not installed,
// and no public header includes it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/limit.h"

namespace cairn::core::formats {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Collects the warnings of a reader. Warnings about the same thing are merged into one, with the number of
/// occurrences.
class Notices {
 public:
  explicit Notices(const std::function<void(const ReadWarning&)>& warn) : warn_(warn) {}

  bool wanted() const { return static_cast<bool>(warn_); }
  /// Counts one more occurrence of the thing that `group` identifies, such as an unknown key. `text` returns the
  /// message; it is called only for the first occurrence.
  template <class Text>
  void add(ReadWarning::Kind kind, const std::string& group, const Text& text) {
    ++count_;
    const auto known = places_.find(group);
    if (known != places_.end()) {
      ++warnings_[known->second].count;
    } else if (warnings_.size() < kMost) {
      places_.emplace(group, warnings_.size());
      warnings_.push_back({kind, text()});
    }
  }
  void add_scaled(std::string text, std::int64_t count, std::int64_t factor) {
    count_ += count;
    warnings_.push_back({ReadWarning::Kind::scaled_costs, std::move(text), count, factor});
  }
  void tell() const;

 private:
  static constexpr std::size_t kMost = 20;  // largest number of different warnings; others are only counted

  const std::function<void(const ReadWarning&)>& warn_;
  std::vector<ReadWarning> warnings_;
  std::map<std::string, std::size_t> places_;
  std::int64_t count_ = 0;
};

/// Position of a value in a file, for error messages such as "g.json: node 3 ('conv1')". The text is composed only when
/// it is printed.
struct Place {
  std::string_view origin;
  std::string_view list = {};  ///< what the value is: "node", "buffer", ...; empty: the file's top level
  std::int64_t index = -1;
  std::string_view name = {};
  Notices* notices = nullptr;  ///< collects the warnings of the file's reader

  std::string text() const;
  [[noreturn]] void fail(std::string_view message) const;
  /// Adds a warning to `notices` for each key of the object that is not in `known`. `known` must be sorted in ascending
  /// order. Messages put `prefix`, such as "op.", before a key.
  void check_keys(const Json& object, std::span<const std::string_view> known, std::string_view prefix = {}) const;
};

/// Returns the keys in ascending order. Place::check_keys() requires this order.
template <std::size_t N>
consteval std::array<std::string_view, N> sorted_keys(const std::string_view (&keys)[N]) {
  std::array<std::string_view, N> sorted = std::to_array(keys);
  std::ranges::sort(sorted);
  return sorted;
}

/// Watches a long read. Throws InterruptedError once the read's limit is reached, and reports the progress of the read.
class ReadWatch {
 public:
  /// Starts to watch a read of `total` bytes. Progress reports state that total.
  ReadWatch(const ReadOptions& options, std::string_view origin, std::size_t total)
      : watch_(options.limit), progress_(options.progress), origin_(origin), total_(total) {}
  /// Notes that `position` bytes have been read so far. Throws InterruptedError once the limit is reached.
  void read(std::size_t position);

 private:
  Stopwatch watch_;
  const std::function<void(std::int64_t, std::int64_t)>& progress_;
  std::string_view origin_;
  std::size_t total_;
};

/// Parses JSON. Numbers become integers if their value is whole and fits into 64 bits. Throws InputError with line and
/// column if `text` is not JSON. Also throws InputError if `text` is nested so deeply that a recursive function would
/// exhaust the stack. Throws InterruptedError when the limit in `options` is reached. If a key occurs twice in an
/// object, `notices` gets a warning.
Json parse_json(std::string_view text, std::string_view origin, const ReadOptions& options = {},
                Notices* notices = nullptr);
/// Parses one line of a file, without a time limit. If the line is not JSON, returns a value for which is_discarded()
/// is true. Errors and notices begin with place.text().
Json parse_json_line(std::string_view line, const Place& place);

/// Returns the value as one line of JSON. Bytes that are not valid UTF-8 become U+FFFD.
std::string dump(const OrderedJson& value);
/// Appends `,"key":[...]` with the items item(i) for i from 0 to count - 1. Each item takes one line, so that people
/// can read the file, and line-based tools can compare and split it.
template <class Item>
void append_list(std::string& text, std::string_view key, std::size_t count, const Item& item) {
  text.append(",\n\"").append(key).append("\":[");
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "\n" : ",\n") + dump(item(i));
  text += "]";
}

/// Describes a value for messages of the form "must be an integer, not ...", as `an object`, `4.5` or `the string "x"`.
std::string describe(const Json& value);

const Json* find(const Json& object, const char* key);
/// Returns the value of `key`. Throws InputError if the key is missing or if `object` is not an object.
const Json& require(const Json& object, const char* key, const Place& place);

/// Returns the value of `key`. Throws InputError if the key is missing, if the value is not an integer, or if it does
/// not fit into int64.
std::int64_t require_int(const Json& object, const char* key, const Place& place);
/// The next four functions return the value of `key`, or `fallback` if the key is missing. They throw InputError if the
/// value has another type. int_or() also throws if the integer does not fit into int64.
std::int64_t int_or(const Json& object, const char* key, const Place& place, std::int64_t fallback);
bool bool_or(const Json& object, const char* key, const Place& place, bool fallback);
double number_or(const Json& object, const char* key, const Place& place, double fallback);
std::string string_or(const Json& object, const char* key, const Place& place, std::string_view fallback);
/// Returns the array under `key`. Throws InputError if the key is missing or if its value is not an array.
const Json& require_array(const Json& object, const char* key, const Place& place);
/// Returns the array under `key`, or nullptr if the key is missing. Throws InputError if the value is not an array.
const Json* find_array(const Json& object, const char* key, const Place& place);
/// Returns the integers of the array under `key`, or an empty list if the key is missing. Throws InputError if the
/// value is not an array of integers.
std::vector<std::int64_t> read_ints(const Json& object, const char* key, const Place& place);

/// Reads the costs of nodes, some of which can be fractions. Once all costs are known, scale() multiplies them by a
/// common factor.
class Costs {
 public:
  /// Reads the cost of `node`. Returns the cost if it is an integer. For a fraction, returns 0 and stores the cost for
  /// scale(). Throws InputError if the cost is negative, is not a number, or does not fit into 64 bits.
  std::int64_t read(const Json& value, const char* key, const Place& place, NodeId node);
  /// Multiplies the costs of all nodes, which are in `unit`, so that fractions become whole. Sets the builder's new
  /// cost unit and adds a warning. Does nothing if all costs are whole.
  void scale(GraphBuilder& builder, const CostUnit& unit, const Place& top) const;

 private:
  std::vector<std::pair<NodeId, double>> fractions_;
};

std::int64_t to_int(const Json& value, const char* key, const Place& place);
/// Returns the value as an index. Throws InputError if it is not an integer in [0, count).
std::int32_t to_index(const Json& value, std::int64_t count, const char* key, const Place& place);

/// Reads an output of a node: `3` or `[3, 1]`. The output number is not checked against the node's outputs.
OutputRef to_output_ref(const Json& value, std::int64_t node_count, const char* key, const Place& place);
/// Writes an output of a node: `3` for the first output of node 3, `[3, 1]` for the second.
OrderedJson to_json(OutputRef output);

/// Checks that the key `format` holds `format`, and that the key `version` holds a number from 1 to `newest`. If
/// `graph` is given, also checks that the key `graph` holds its fingerprint or `or_fingerprint`. Returns the version.
std::int64_t check_header(const Json& file, std::string_view format, const Place& place, const Graph* graph = nullptr,
                          std::string_view or_fingerprint = {}, std::int64_t newest = 1);

/// Returns builder.build(). Puts the file's name before the message of every error.
Graph build_graph(GraphBuilder& builder, std::string_view origin);

Graph read_graph(std::string_view text, std::string_view origin, const ReadOptions& options, Notices& notices);
Graph graph_from_cairn_json(const Json& file, std::string_view origin, Notices& notices);
Graph graph_from_node_link(const Json& file, std::string_view origin, Notices& notices);
Graph graph_from_simrd(std::string_view text, std::string_view origin, const ReadOptions& options, Notices& notices);
Graph graph_from_gr(std::string_view text, std::string_view origin, const ReadOptions& options);

}  // namespace cairn::core::formats
