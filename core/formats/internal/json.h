#pragma once

// Private to the library: what its JSON readers share. Not installed; no public header includes it.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"

namespace cairn::core::formats {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Where in a file a value stands, for errors: "g.json: node 3 ('conv1')". Costs nothing until it is printed.
struct Place {
  std::string_view origin;
  std::string_view list = {};  ///< "node", "buffer", ...; empty: the file's top level
  std::int64_t index = -1;
  std::string_view name = {};

  std::string text() const;
  /// Throws InputError "<text()>: <message>".
  [[noreturn]] void fail(std::string_view message) const;
};

/// Throws InputError where brackets nest so deep that walking the document would exhaust the stack. O(bytes).
void check_depth(std::string_view text, std::string_view origin);

/// Ends a long read.
class ReadWatch {
 public:
  ReadWatch(const Limit& limit, std::string_view origin) : watch_(limit), origin_(origin) {}
  /// Takes note that `position` bytes have been read in all. Throws InterruptedError once the limit is reached.
  void read(std::size_t position);

 private:
  Stopwatch watch_;
  std::string_view origin_;
};

/// Throws InputError that gives line and column where `text` is no JSON, InterruptedError where the limit ends it.
Json parse_json(std::string_view text, std::string_view origin, const Limit& limit = {});

/// One line, invalid UTF-8 replaced.
std::string dump(const OrderedJson& value);

/// "an object", "the number 4.5", "the string 'x'", ...: for messages of the form "must be an integer, not ...".
std::string describe(const Json& value);

const Json* find(const Json& object, const char* key);
/// Throws InputError where the key is missing.
const Json& require(const Json& object, const char* key, const Place& place);

/// The value of `key`; throws InputError on a wrong type or an integer outside int64. `require_*` where it is missing,
/// too; the others return `fallback` then.
std::int64_t require_int(const Json& object, const char* key, const Place& place);
std::int64_t int_or(const Json& object, const char* key, const Place& place, std::int64_t fallback);
bool bool_or(const Json& object, const char* key, const Place& place, bool fallback);
double number_or(const Json& object, const char* key, const Place& place, double fallback);
std::string string_or(const Json& object, const char* key, const Place& place, std::string_view fallback);
const Json& require_array(const Json& object, const char* key, const Place& place);
/// nullptr where it is missing.
const Json* find_array(const Json& object, const char* key, const Place& place);

std::int64_t to_int(const Json& value, const char* key, const Place& place);
/// An index in [0, count).
std::int32_t to_index(const Json& value, std::int64_t count, const char* key, const Place& place);

/// An output of a node: `3` or `[3, 1]`. Output numbers are not checked against the node's.
OutputRef to_output_ref(const Json& value, std::int64_t node_count, const char* key, const Place& place);
/// The same the other way: `3` for the first output.
OrderedJson to_json(OutputRef output);

/// Checks `format`, `version` (1 to `newest`; it is returned) and, for files about a graph, that `graph` is its
/// fingerprint.
std::int64_t check_header(const Json& file, std::string_view format, const Place& place, const Graph* graph = nullptr,
                          std::string_view or_fingerprint = {}, std::int64_t newest = 1);

/// builder.build() with the file's name before every message.
Graph build_graph(GraphBuilder& builder, std::string_view origin);

Graph graph_from_cairn_json(const Json& file, std::string_view origin);
Graph graph_from_node_link(const Json& file, std::string_view origin);
Graph graph_from_simrd(std::string_view text, std::string_view origin, const Limit& limit);
Graph graph_from_gr(std::string_view text, std::string_view origin, const Limit& limit);

}  // namespace cairn::core::formats
