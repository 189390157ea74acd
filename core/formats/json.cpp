#include "cairn/core/formats/internal/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "cairn/core/error.h"

namespace cairn::core::formats {

std::string Place::text() const {
  if (list.empty()) return std::string(origin);
  if (name.empty()) return fmt::format("{}: {} {}", origin, list, index);
  return fmt::format("{}: {} {} ('{}')", origin, list, index, name);
}

void Place::fail(std::string_view message) const { throw InputError(fmt::format("{}: {}", text(), message)); }

void check_depth(std::string_view text, std::string_view origin) {
  constexpr int kMostDepth = 256;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\') {
        ++i;  // whatever is escaped does not end the string
      } else if (text[i] == '"') {
        in_string = false;
      }
      continue;
    }
    if (text[i] == '"') in_string = true;
    if (text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == '}') --depth;
    if (depth > kMostDepth) {
      throw InputError(
          fmt::format("{}: the JSON is nested more than {} deep, as no file of a known format is", origin, kMostDepth));
    }
  }
}

namespace {

/// " (invalid literal)" out of nlohmann's "[json...] parse error at line 1, ...: syntax error while parsing value -
/// invalid literal; last read: '...'"; empty where the message looks different.
std::string parser_reason(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash == std::string_view::npos) return {};
  const std::string_view reason = what.substr(dash + 3);
  return fmt::format(" ({})", reason.substr(0, reason.find("; last read:")));
}

/// The text as the parser reads it, with a look at the watch every 64 KiB.
class WatchedText {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  WatchedText(const char* at, const char* begin, ReadWatch& watch) : at_(at), begin_(begin), watch_(&watch) {}

  const char& operator*() const { return *at_; }
  WatchedText& operator++() {
    constexpr std::ptrdiff_t kEvery = 1 << 16;
    if ((++at_ - begin_) % kEvery == 0) watch_->read(static_cast<std::size_t>(at_ - begin_));
    return *this;
  }
  bool operator==(const WatchedText& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char* begin_;
  ReadWatch* watch_;
};

}  // namespace

void ReadWatch::read(std::size_t position) {
  watch_.charge(static_cast<std::int64_t>(position) - watch_.work());
  if (!watch_.expired()) return;
  throw InterruptedError(watch_.interrupted() ? fmt::format("{}: reading it was interrupted", origin_)
                                              : fmt::format("{}: not read within the limit; raise it", origin_));
}

Json parse_json(std::string_view text, std::string_view origin, const Limit& limit) {
  check_depth(text, origin);
  // The parser takes it for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw InputError(fmt::format("{}: byte {} is 0, which no JSON holds; is it a binary file?", origin, zero));
  try {
    ReadWatch watch(limit, origin);
    return Json::parse(WatchedText(text.data(), text.data(), watch),
                       WatchedText(text.data() + text.size(), text.data(), watch));
  } catch (const Json::parse_error& error) {
    // `byte` counts from 1 and points behind the end where the text stops too early.
    const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const std::string_view before = text.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    throw InputError(fmt::format("{}: line {}, column {}: {}", origin, line, at - line_begin + 1,
                                 at == text.size() ? "the JSON ends too early; is the file truncated?"
                                                   : "this is not valid JSON" + parser_reason(error.what())));
  } catch (const Json::exception&) {
    throw InputError(fmt::format("{}: the JSON holds a number beyond double precision", origin));
  }
}

std::string dump(const OrderedJson& value) { return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

std::string describe(const Json& value) {
  constexpr std::size_t kMostBytes = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!value.is_string()) return text;
  return text.size() > kMostBytes ? "a string" : "the string " + text;
}

const Json* find(const Json& object, const char* key) {
  const auto entry = object.find(key);
  return entry == object.end() ? nullptr : &*entry;
}

const Json& require(const Json& object, const char* key, const Place& place) {
  if (!object.is_object()) place.fail(fmt::format("must be an object, not {}", describe(object)));
  const Json* value = find(object, key);
  if (value == nullptr) place.fail(fmt::format("\"{}\" is missing", key));
  return *value;
}

std::int64_t to_int(const Json& value, const char* key, const Place& place) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    place.fail(fmt::format("\"{}\" is {}, which does not fit into 64 bits", key, describe(value)));
  }
  if (!value.is_number_integer()) {
    place.fail(fmt::format("\"{}\" must be an integer of at most 63 bits, not {}", key, describe(value)));
  }
  return value.get<std::int64_t>();
}

std::int32_t to_index(const Json& value, std::int64_t count, const char* key, const Place& place) {
  const std::int64_t index = to_int(value, key, place);
  if (index < 0 || index >= count) {
    place.fail(fmt::format("\"{}\" names {}, but {}", key, index,
                           count == 0 ? "there are none" : fmt::format("there are only 0 to {}", count - 1)));
  }
  return static_cast<std::int32_t>(index);
}

std::int64_t require_int(const Json& object, const char* key, const Place& place) {
  return to_int(require(object, key, place), key, place);
}

std::int64_t int_or(const Json& object, const char* key, const Place& place, std::int64_t fallback) {
  const Json* value = find(object, key);
  return value == nullptr ? fallback : to_int(*value, key, place);
}

bool bool_or(const Json& object, const char* key, const Place& place, bool fallback) {
  const Json* value = find(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) place.fail(fmt::format("\"{}\" must be true or false, not {}", key, describe(*value)));
  return value->get<bool>();
}

double number_or(const Json& object, const char* key, const Place& place, double fallback) {
  const Json* value = find(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) place.fail(fmt::format("\"{}\" must be a number, not {}", key, describe(*value)));
  return value->get<double>();
}

std::string string_or(const Json& object, const char* key, const Place& place, std::string_view fallback) {
  const Json* value = find(object, key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) place.fail(fmt::format("\"{}\" must be a string, not {}", key, describe(*value)));
  return value->get<std::string>();
}

const Json& require_array(const Json& object, const char* key, const Place& place) {
  const Json& value = require(object, key, place);
  if (!value.is_array()) place.fail(fmt::format("\"{}\" must be a list, not {}", key, describe(value)));
  return value;
}

const Json* find_array(const Json& object, const char* key, const Place& place) {
  return find(object, key) == nullptr ? nullptr : &require_array(object, key, place);
}

OutputRef to_output_ref(const Json& value, std::int64_t node_count, const char* key, const Place& place) {
  if (!value.is_array()) return to_index(value, node_count, key, place);
  if (value.size() != 2) place.fail(fmt::format("\"{}\" must be a node or [node, output], not {}", key, value.dump()));
  constexpr std::int64_t kMostOutputs = std::numeric_limits<std::int32_t>::max();
  return {to_index(value[0], node_count, key, place), to_index(value[1], kMostOutputs, key, place)};
}

OrderedJson to_json(OutputRef output) {
  if (output.output == 0) return output.node;
  return OrderedJson::array({output.node, output.output});
}

std::int64_t check_header(const Json& file, std::string_view format, const Place& place, const Graph* graph,
                          std::string_view or_fingerprint, std::int64_t newest) {
  if (!file.is_object()) place.fail(fmt::format("is no {} file: it holds {}", format, describe(file)));
  const std::string found = string_or(file, "format", place, "");
  if (found != format) {
    place.fail(fmt::format("is no {} file: its \"format\" is {}", format,
                           found.empty() ? "missing" : fmt::format("'{}'", found)));
  }
  const std::int64_t version = require_int(file, "version", place);
  if (version < 1 || version > newest) {
    place.fail(fmt::format("has version {}, but only version{} can be read", version,
                           newest == 1 ? std::string(" 1") : fmt::format("s 1 to {}", newest)));
  }
  if (graph == nullptr) return version;
  require(file, "graph", place);
  const std::string made_for = string_or(file, "graph", place, "");
  if (made_for != graph->fingerprint() && (or_fingerprint.empty() || made_for != or_fingerprint)) {
    place.fail(fmt::format("was made for another graph (fingerprint {}, but {} has {}); make it again for this one",
                           made_for, graph->name().empty() ? "this graph" : "'" + graph->name() + "'",
                           graph->fingerprint()));
  }
  return version;
}

Graph build_graph(GraphBuilder& builder, std::string_view origin) {
  try {
    return builder.build();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", origin, error.what()));
  }
}

}  // namespace cairn::core::formats
