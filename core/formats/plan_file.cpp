#include <fmt/format.h>

#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/sum_limit.h"

namespace cairn::core {
namespace {

using namespace formats;

constexpr auto kPlanKeys = sorted_keys({"alignment", "buffers", "bytes", "format", "graph", "lower_bound", "version"});
constexpr auto kBufferKeys = sorted_keys({"alias_of", "first", "last", "node", "offset", "output", "scratch", "size"});

OrderedJson buffer_to_json(const Buffer& buffer) {
  OrderedJson json{{"node", buffer.node},
                   {"first", buffer.first},
                   {"last", buffer.last},
                   {"offset", buffer.offset},
                   {"size", buffer.size}};
  if (buffer.output != 0) json["output"] = buffer.output;
  if (buffer.scratch) json["scratch"] = true;
  if (buffer.alias_of != OutputRef()) json["alias_of"] = to_json(buffer.alias_of);
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
  if (buffer.first < 0 || buffer.last < buffer.first) {
    place.fail(fmt::format("its steps {} to {} are not a valid lifetime", buffer.first, buffer.last));
  }
  if (buffer.offset < 0 || buffer.size < 0 || buffer.offset > kSumLimit || buffer.size > kSumLimit) {
    place.fail(fmt::format("its offset {} or size {} is not between 0 and 2^62", buffer.offset, buffer.size));
  }
  return buffer;
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
  const Json& buffers = require_array(json, "buffers", top);
  plan.buffers.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Place place{.origin = origin, .list = "buffer", .index = static_cast<std::int64_t>(i), .notices = &notices};
    plan.buffers.push_back(read_buffer(buffers[i], place, graph));
  }
  notices.tell();
  return plan;
}

}  // namespace cairn::core
