#include <fmt/format.h>

#include <limits>

#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/sum_limit.h"

namespace cairn::core {
namespace {

using namespace formats;

constexpr auto kPlanKeys =
    sorted_keys({"alignment", "buffers", "bytes", "format", "graph", "host", "lower_bound", "version"});
constexpr auto kHostKeys = sorted_keys({"buffers", "bytes", "lower_bound"});
constexpr auto kBufferKeys =
    sorted_keys({"alias_of", "evict", "fetch", "first", "last", "node", "offset", "output", "scratch", "size"});

OrderedJson buffer_to_json(const Buffer& buffer) {
  OrderedJson json{{"node", buffer.node},
                   {"first", buffer.first},
                   {"last", buffer.last},
                   {"offset", buffer.offset},
                   {"size", buffer.size}};
  if (buffer.output != 0) json["output"] = buffer.output;
  if (buffer.scratch) json["scratch"] = true;
  if (buffer.alias_of != OutputRef()) json["alias_of"] = to_json(buffer.alias_of);
  if (buffer.evict >= 0) json["evict"] = buffer.evict;
  if (buffer.fetch >= 0) json["fetch"] = buffer.fetch;
  return json;
}

Buffer read_buffer(const Json& json, const Place& place, const Graph& graph) {
  if (!json.is_object()) place.fail(fmt::format("must be an object, not {}", describe(json)));
  place.check_keys(json, kBufferKeys);
  Buffer buffer;
  buffer.node = to_index(require(json, "node", place), graph.node_count(), "node", place);
  if (const Json* output = find(json, "output")) {
    buffer.output = to_index(*output, graph.output_count(buffer.node), "output", place);
  }
  buffer.first = require_int(json, "first", place);
  buffer.last = require_int(json, "last", place);
  buffer.offset = require_int(json, "offset", place);
  buffer.size = require_int(json, "size", place);
  buffer.scratch = bool_or(json, "scratch", place, false);
  if (const Json* output = find(json, "alias_of")) {
    buffer.alias_of = to_output_ref(*output, graph.node_count(), "alias_of", place);
    if (buffer.alias_of.output >= graph.output_count(buffer.alias_of.node)) {
      place.fail(fmt::format("\"alias_of\" names output {} of node {}, which has only {}", buffer.alias_of.output,
                             buffer.alias_of.node, graph.output_count(buffer.alias_of.node)));
    }
  }
  constexpr std::int64_t kMostTransfers = std::numeric_limits<std::int32_t>::max();
  if (const Json* evict = find(json, "evict")) buffer.evict = to_index(*evict, kMostTransfers, "evict", place);
  if (const Json* fetch = find(json, "fetch")) buffer.fetch = to_index(*fetch, kMostTransfers, "fetch", place);
  if (buffer.first < 0 || buffer.last < buffer.first) {
    place.fail(fmt::format("its steps {} to {} are not a valid lifetime", buffer.first, buffer.last));
  }
  if (buffer.offset < 0 || buffer.size < 0 || buffer.offset > kSumLimit || buffer.size > kSumLimit) {
    place.fail(fmt::format("its offset {} or size {} is not between 0 and 2^62", buffer.offset, buffer.size));
  }
  return buffer;
}

std::vector<Buffer> read_buffers(const Json& json, std::string_view word, const Place& top, const Graph& graph) {
  const Json& list = require_array(json, "buffers", top);
  std::vector<Buffer> buffers;
  buffers.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place place{
        .origin = top.origin, .list = word, .index = static_cast<std::int64_t>(i), .notices = top.notices};
    buffers.push_back(read_buffer(list[i], place, graph));
  }
  return buffers;
}

}  // namespace

std::string plan_to_json(const Graph& graph, const Plan& plan) {
  std::string text = dump({{"format", "cairn.plan"},
                           {"version", 1},
                           {"graph", graph.fingerprint()},
                           {"bytes", plan.bytes},
                           {"lower_bound", plan.lower_bound},
                           {"alignment", plan.alignment}});
  text.pop_back();
  append_list(text, "buffers", plan.buffers.size(), [&](std::size_t i) { return buffer_to_json(plan.buffers[i]); });
  if (!plan.host_buffers.empty()) {
    OrderedJson buffers = OrderedJson::array();
    for (const Buffer& buffer : plan.host_buffers) buffers.push_back(buffer_to_json(buffer));
    const OrderedJson host{
        {"bytes", plan.host_bytes}, {"lower_bound", plan.host_lower_bound}, {"buffers", std::move(buffers)}};
    text += ",\"host\":" + dump(host);
  }
  return text + "}\n";
}

Plan load_plan(const std::string& path, const Graph& graph, const ReadOptions& options) {
  return parse_plan(read_file(path, options), input_name(path), graph, options);
}

Plan parse_plan(std::string_view text, const std::string& origin, const Graph& graph, const ReadOptions& options) {
  Notices notices(options.warn);
  const Place top{.origin = origin, .notices = &notices};
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) top.fail("is empty");
  const Json json = parse_json(text, origin, options, &notices);
  check_header(json, "cairn.plan", top, &graph);
  top.check_keys(json, kPlanKeys);

  Plan plan;
  plan.bytes = require_int(json, "bytes", top);
  plan.lower_bound = int_or(json, "lower_bound", top, 0);
  plan.alignment = int_or(json, "alignment", top, 1);
  if (plan.bytes < 0 || plan.lower_bound < 0) top.fail("\"bytes\" and \"lower_bound\" must not be negative");
  if (plan.alignment < 1) top.fail(fmt::format("\"alignment\" is {}, but must be at least 1", plan.alignment));
  plan.buffers = read_buffers(json, "buffer", top, graph);
  if (const Json* host = find(json, "host")) {
    if (!host->is_object()) top.fail(fmt::format("\"host\" must be an object, not {}", describe(*host)));
    top.check_keys(*host, kHostKeys);
    plan.host_bytes = require_int(*host, "bytes", top);
    plan.host_lower_bound = int_or(*host, "lower_bound", top, 0);
    if (plan.host_bytes < 0 || plan.host_lower_bound < 0) top.fail("the bytes on the host must not be negative");
    plan.host_buffers = read_buffers(*host, "buffer on the host", top, graph);
  }
  notices.tell();
  return plan;
}

}  // namespace cairn::core
