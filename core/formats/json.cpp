#include "cairn/core/formats/support/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace formats {

std::string Place::text() const {
  if (list.empty()) return std::string(origin);
  if (name.empty()) return fmt::format("{}: {} {}", origin, list, index);
  return fmt::format("{}: {} {} ('{}')", origin, list, index, printable(name));
}

void Place::fail(std::string_view message) const { throw InputError(fmt::format("{}: {}", text(), message)); }

void Place::check_keys(const Json& object, std::span<const std::string_view> known, std::string_view prefix) const {
  if (notices == nullptr || !notices->wanted()) return;
  auto next = known.begin();
  for (auto entry = object.begin(); entry != object.end(); ++entry) {  // both `known` and the keys of `object` ascend
    const std::string& key = entry.key();
    while (next != known.end() && *next < key) ++next;
    if (next != known.end() && *next == key) continue;
    notices->add(ReadWarning::Kind::unknown_key, fmt::format("{}/{}{}", list, prefix, key), [&] {
      return fmt::format("{}: the key \"{}{}\" is unknown and ignored{}", text(), prefix, printable(key),
                         did_you_mean(key, known));
    });
  }
}

void Notices::tell() const {
  if (!warn_) return;
  std::int64_t told = 0;
  for (ReadWarning warning : warnings_) {
    told += warning.count;
    if (warning.count > 1 && warning.kind != ReadWarning::Kind::scaled_costs)
      warning.text += fmt::format(" (in {} places)", warning.count);
    warn_(warning);
  }
  if (told < count_)
    warn_({ReadWarning::Kind::unknown_key,
           fmt::format("{} more places have other keys that are unknown or repeated", count_ - told), count_ - told});
}

namespace {

/// Extracts the reason from a message of nlohmann's parser, for example " (invalid literal)" from "[json...] parse
/// error at line 1, ...: syntax error while parsing value - invalid literal; last read: '...'". Returns an empty text
/// if the message has another form.
std::string parser_reason(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash == std::string_view::npos) return {};
  const std::string_view reason = what.substr(dash + 3);
  return fmt::format(" ({})", reason.substr(0, reason.find("; last read:")));
}

/// Builds the document from the events of nlohmann's parser, as nlohmann's own builder does. In addition, reports keys
/// that occur twice, turns numbers such as 4.0 and 1e3 into integers, and limits the depth to which values are nested.
class DocumentBuilder {
 public:
  DocumentBuilder(std::string_view origin, Notices* notices) : origin_(origin), notices_(notices) {}

  struct Fault {
    std::size_t byte = 0;  ///< position of the faulty byte, counted from 1
    std::string what;
    bool number = false;  ///< whether the fault is a number beyond the range of a double
  };
  Json document;
  std::optional<Fault> fault;

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string& text) {
    std::int64_t whole = 0;
    if (parse_whole(text, whole) != NumberFault::none) return put(value);
    return whole < 0 ? put(whole) : put(static_cast<std::uint64_t>(whole));
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::value_t::object); }
  bool start_array(std::size_t) { return open(Json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Level& level = levels_.back();
    const auto [entry, added] = level.object->try_emplace(std::move(name));
    if (!added) note_duplicate(entry->first);
    level.key = &entry->first;
    level.value = &entry->second;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) {
    constexpr int kNumberOverflow = 406;
    fault = {byte, error.what(), error.id == kNumberOverflow};
    return false;
  }

 private:
  /// An object or list whose end has not been read yet.
  struct Level {
    Json::object_t* object = nullptr;
    Json::array_t* array = nullptr;
    const std::string* key = nullptr;  ///< in an object, the key whose value is read next
    Json* value = nullptr;
  };

  template <class Value>
  Json& place(Value&& value) {
    if (levels_.empty()) return document = Json(std::forward<Value>(value));
    Level& level = levels_.back();
    if (level.array != nullptr) return level.array->emplace_back(std::forward<Value>(value));
    return *level.value = Json(std::forward<Value>(value));
  }
  template <class Value>
  bool put(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json::value_t type) {
    constexpr std::size_t kMostDepth = 256;
    if (levels_.size() == kMostDepth)
      throw InputError(fmt::format("{}: the JSON is nested more than {} deep, as no file of a known format is", origin_,
                                   kMostDepth));
    Json& opened = place(type);
    Level level;
    level.object = opened.get_ptr<Json::object_t*>();
    level.array = opened.get_ptr<Json::array_t*>();
    levels_.push_back(level);
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  /// Returns the path of a key, such as "nodes[3].size", or "nodes[].size" if `numbers` is false.
  std::string path(std::string_view key, bool numbers) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (level.array != nullptr) {
        path += numbers ? fmt::format("[{}]", level.array->size() - 1) : "[]";
      } else {
        path += (path.empty() ? "" : ".") + *level.key;
      }
    }
    return fmt::format("{}{}{}", path, path.empty() ? "" : ".", key);
  }
  void note_duplicate(const std::string& key) {
    if (notices_ == nullptr || !notices_->wanted()) return;
    notices_->add(ReadWarning::Kind::duplicate_key, path(key, false), [&] {
      return fmt::format("{}: {} occurs twice in one object; the last value counts", origin_,
                         printable(path(key, true)));
    });
  }

  std::string_view origin_;
  Notices* notices_;
  std::vector<Level> levels_;
};

/// Iterates over the text for the parser. Every 64 KiB, reports the position to a ReadWatch, which shows progress and
/// ends the reading at the time limit.
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
  if (progress_) progress_(static_cast<std::int64_t>(position), static_cast<std::int64_t>(total_));
  watch_.charge(static_cast<std::int64_t>(position) - watch_.work());
  if (!watch_.expired()) return;
  throw InterruptedError(watch_.interrupted() ? fmt::format("{}: reading it was interrupted", origin_)
                                              : fmt::format("{}: not read within the time limit; raise it", origin_));
}

Json parse_json(std::string_view text, std::string_view origin, const ReadOptions& options, Notices* notices) {
  // The parser would take a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw InputError(fmt::format("{}: byte {} is 0, which no JSON holds; is it a binary file?", origin, zero));
  ReadWatch watch(options, origin, text.size());
  DocumentBuilder builder(origin, notices);
  Json::sax_parse(WatchedText(text.data(), text.data(), watch),
                  WatchedText(text.data() + text.size(), text.data(), watch), &builder);
  if (!builder.fault) return std::move(builder.document);
  if (builder.fault->number)
    throw InputError(fmt::format("{}: the JSON holds a number beyond double precision", origin));
  // `byte` counts from 1. It points behind the end if the text ends too early.
  const std::size_t at = std::min(builder.fault->byte > 0 ? builder.fault->byte - 1 : 0, text.size());
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  throw InputError(fmt::format("{}: line {}, column {}: {}", origin, line, at - line_begin + 1,
                               at == text.size() ? "the JSON ends too early; is the file truncated?"
                                                 : "this is not valid JSON" + parser_reason(builder.fault->what)));
}

Json parse_json_line(std::string_view line, const Place& place) {
  const std::string where = place.text();
  DocumentBuilder builder(where, place.notices);
  Json::sax_parse(line.begin(), line.end(), &builder);
  if (builder.fault) return Json(Json::value_t::discarded);
  return std::move(builder.document);
}

}  // namespace formats

std::string_view to_string(ReadWarning::Kind kind) {
  constexpr std::array<std::string_view, 3> kNames{"unknown_key", "duplicate_key", "scaled_costs"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace formats {

std::string dump(const OrderedJson& value) { return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

namespace {
constexpr double kTwoTo63 = 9223372036854775808.0;
}  // namespace

std::string describe(const Json& value) {
  constexpr std::size_t kMostBytes = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_number_float()) {
    // DocumentBuilder has turned every whole number that fits into 64 bits into an integer. So if a double looks whole
    // here, the text held a fraction that a double cannot represent exactly, such as 4096.0000000000001.
    const auto number = value.get<double>();
    if (std::abs(number) < kTwoTo63 && number == std::trunc(number))
      return fmt::format("a fraction close to {}", static_cast<std::int64_t>(number));
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
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

namespace {

/// The shortest decimal number that a parser reads as a given double >= 0. It is `mantissa` times ten to the power
/// `power`.
struct Decimal10 {
  std::int64_t mantissa = 0;
  int power = 0;
};
Decimal10 shortest_decimal(double value) {
  std::array<char, 32> text{};
  const char* const end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific).ptr;
  Decimal10 decimal;
  const char* at = text.data();
  bool fraction = false;
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      fraction = true;
      continue;
    }
    decimal.mantissa = decimal.mantissa * 10 + (*at - '0');
    decimal.power -= fraction ? 1 : 0;
  }
  if (at != end) ++at;                // skips the "e"
  if (at != end && *at == '+') ++at;  // from_chars does not accept a plus sign
  int exponent = 0;
  std::from_chars(at, end, exponent);
  decimal.power += exponent;
  return decimal;
}

constexpr int kMostPlaces = 18;
constexpr std::int64_t power_of_ten(int exponent) {
  std::int64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

using Wide = __int128;
constexpr Wide kTooMuch = Wide{1} << 100;

/// Returns the decimal times 10^places, rounded half up, or kTooMuch if that is larger than any cost.
Wide scaled(const Decimal10& decimal, int places) {
  const int power = decimal.power + places;
  if (power > kMostPlaces) return decimal.mantissa == 0 ? 0 : kTooMuch;
  if (power >= 0) return Wide{decimal.mantissa} * power_of_ten(power);
  if (-power > kMostPlaces) return 0;
  const std::int64_t divisor = power_of_ten(-power);
  return decimal.mantissa / divisor + (decimal.mantissa % divisor >= divisor - divisor / 2 ? 1 : 0);
}

/// Returns the unit of costs after all costs were multiplied by 10^places. For example, "ms" becomes "us" for 3 places,
/// and "ms/10" for 1 place.
CostUnit divided(const CostUnit& unit, int places) {
  static constexpr std::array<std::string_view, 4> kTimes{"s", "ms", "us", "ns"};
  const auto time = static_cast<std::size_t>(std::find(kTimes.begin(), kTimes.end(), unit.name) - kTimes.begin());
  const std::size_t finer = time + static_cast<std::size_t>(places / 3);
  if (places % 3 == 0 && finer < kTimes.size()) return {std::string(kTimes[finer]), unit.source};
  constexpr std::size_t kMostName = 16, kMostSource = 400;
  CostUnit divided{fmt::format("{}/{}", unit.name, power_of_ten(places)),
                   fmt::format("{}, multiplied by {}", unit.source.empty() ? "costs of the file" : unit.source,
                               power_of_ten(places))};
  if (!unit.known() || divided.name.size() > kMostName) divided.name.clear();
  if (divided.source.size() > kMostSource) divided.source = unit.source;
  return divided;
}

}  // namespace

std::int64_t Costs::read(const Json& value, const char* key, const Place& place, NodeId node) {
  if (!value.is_number_float()) return to_int(value, key, place);
  const auto cost = value.get<double>();
  if (cost < 0) place.fail(fmt::format("\"{}\" is {}, but must not be negative", key, describe(value)));
  if (!(cost < kTwoTo63))
    place.fail(fmt::format("\"{}\" is {}, which does not fit into 64 bits", key, describe(value)));
  fractions_.emplace_back(node, cost);
  return 0;
}

void Costs::scale(GraphBuilder& builder, const CostUnit& unit, const Place& top) const {
  if (fractions_.empty()) return;
  // Largest sum of costs. Solver engines calculate with doubles, in which every integer up to 2^53 is exact.
  constexpr Wide kMostSum = Wide{1} << 53;
  std::vector<Decimal10> decimals;
  int exact = 0;
  for (const auto& [node, cost] : fractions_) {
    decimals.push_back(shortest_decimal(cost));
    exact = std::max(exact, -decimals.back().power);
  }
  Wide whole = 0;
  for (NodeId v = 0; v < builder.node_count(); ++v) whole += std::max<std::int64_t>(builder.node(v).cost, 0);
  const auto fits = [&](int places) {
    Wide sum = whole > kMostSum ? kTooMuch : whole * power_of_ten(places);
    for (const Decimal10& decimal : decimals) {
      if (sum > kMostSum) return false;
      sum += scaled(decimal, places);
    }
    return sum <= kMostSum;
  };
  int places = std::min(exact, kMostPlaces);
  while (places > 0 && !fits(places)) --places;
  const std::int64_t factor = power_of_ten(places);
  if (factor > 1) {
    for (NodeId v = 0; v < builder.node_count(); ++v) {
      if (builder.node(v).cost > 0) builder.node(v).cost *= factor;
    }
  }
  if (factor > 1) builder.set_cost_unit(divided(unit, places));
  for (std::size_t i = 0; i < decimals.size(); ++i) {
    const Wide cost = scaled(decimals[i], places);
    builder.node(fractions_[i].first).cost = static_cast<std::int64_t>(std::min(cost, Wide{1} << 62));
  }
  if (top.notices == nullptr || !top.notices->wanted()) return;
  const std::string how = factor == 1       ? "they were rounded to whole numbers"
                          : places == exact ? fmt::format("all costs were multiplied by {} to be whole numbers", factor)
                                            : fmt::format("all costs were multiplied by {} and rounded", factor);
  top.notices->add_scaled(fmt::format("{}: {} of the costs {}; {}", top.text(), fractions_.size(),
                                      fractions_.size() == 1 ? "is a fraction" : "are fractions", how),
                          static_cast<std::int64_t>(fractions_.size()), factor);
}

std::int64_t to_int(const Json& value, const char* key, const Place& place) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    place.fail(fmt::format("\"{}\" is {}, which does not fit into 64 bits", key, describe(value)));
  }
  if (value.is_number_float() && std::abs(value.get<double>()) >= kTwoTo63) {
    place.fail(fmt::format("\"{}\" is {}, which does not fit into 64 bits", key, describe(value)));
  }
  if (!value.is_number_integer()) {
    place.fail(fmt::format("\"{}\" must be a whole number, not {}", key, describe(value)));
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

std::vector<std::int64_t> read_ints(const Json& object, const char* key, const Place& place) {
  std::vector<std::int64_t> values;
  if (const Json* list = find_array(object, key, place)) {
    values.reserve(list->size());
    for (const Json& value : *list) values.push_back(to_int(value, key, place));
  }
  return values;
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
  if (!file.is_object()) place.fail(fmt::format("is not a {} file: it holds {}", format, describe(file)));
  const std::string found = string_or(file, "format", place, "");
  if (found != format) {
    place.fail(fmt::format("is not a {} file: its \"format\" is {}", format,
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

}  // namespace formats
}  // namespace cairn::core
