// Reads simrd traces. Such a trace is the log of one PyTorch training step, which the simulator of DTR replays
// (Kirisame et al., "Dynamic Tensor Rematerialization", 2021). Each line is a JSON object. The step begins at the START
// annotation, or at the first line if there is none. It ends with the trace.
//
// Meaning of a trace:
// - A storage holds bytes. Tensors, their copies and their views are references to a storage.
// - A view does not become a node, because it touches no data. A node for the view would be a second reader of the
//   storage, and then the storage could not be updated in place. The view's time is added to the node that made the
//   storage, because the view must be made again with it. The time of a view of a constant is added to the next node.
//   So the baseline cost is the sum of all times in the trace.
// - CONSTANT storages, and all storages that exist before START, become resident bytes. Each storage counts once.
// - A CALL becomes one node. The node has an output for every result that has its own storage.
// - A MUTATE becomes an in-place node. The node has one output for every storage that it mutates. This output is the
//   storage's new version. Later readers of any tensor of this storage read the new version. The scratch is minus the
//   size of the old versions that only this node reads. If other nodes read an old version too, both versions take
//   memory. A mutated constant becomes a kept output of size 0, because the node writes resident memory.
// - COPY and COPY_FROM add a reference to a storage; RELEASE removes one. Storages that have references at the end are
//   kept.
// - The cost of a node is its TIME (whole ns). BACKWARD marks where the backward pass begins. The graph's input order
//   is the order of the trace.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/sum_limit.h"
#include "cairn/core/support/text.h"

namespace cairn::core::formats {
namespace {

constexpr auto kKeys = sorted_keys(
    {"ALIAS", "ANNOTATION", "ARGS", "DST", "INSTRUCTION", "MEMORY", "MUTATE", "NAME", "RESULT", "SRC", "TIME"});

using StorageId = std::int32_t;
constexpr StorageId kNoStorage = -1;

struct Storage {
  std::int64_t line = 0;    ///< line of the trace that defines the storage
  std::int64_t bytes = -1;  ///< -1 until its MEMORY line is read
  std::int64_t references = 0;
  bool resident = false;
};

/// A CALL or MUTATE, with its tensors replaced by their storages.
struct Operation {
  std::string name;
  std::int64_t time = 0;
  std::int64_t line = 0;
  bool backward = false;
  std::vector<StorageId> args;
  std::vector<StorageId> results;  ///< storages of results; kNoStorage for a view
  std::vector<StorageId> viewed;   ///< storages that results are views of
  std::vector<StorageId> mutated;
};

struct Trace {
  std::vector<Storage> storages;
  std::vector<Operation> operations;
};

/// The first pass over a trace. It converts lines to operations on storages, and counts the references that each
/// storage still has at the end of the trace.
class TraceReader {
 public:
  TraceReader(std::string_view text, std::string_view origin, const ReadOptions& options, Notices& notices)
      : text_(text),
        place_{.origin = origin, .list = "line", .notices = &notices},
        watch_(options, origin, text.size()) {}

  Trace read() {
    // Without a START annotation, the whole file is the step.
    in_step_ = text_.find("\"START\"") == std::string_view::npos;
    std::size_t begin = 0;
    for (place_.index = 1; begin < text_.size(); ++place_.index) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string_view line = text_.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) read_line(line);
      begin = end + 1;
      watch_.read(begin);
    }
    if (!in_step_) place_.fail("the trace ends, but its START annotation never came");
    return std::move(trace_);
  }

 private:
  /// The result of a CALL that a tensor's name refers to. The MEMORY and ALIAS lines after the CALL describe this
  /// result.
  struct Definition {
    std::size_t operation = 0;
    std::size_t result = 0;
  };

  void read_line(std::string_view line) {
    line_ = parse_json_line(line, place_);
    if (line_.is_discarded()) place_.fail("this is not a valid JSON object; is the trace truncated?");
    if (!line_.is_object()) place_.fail(fmt::format("must be an object, not {}", describe(line_)));
    place_.check_keys(line_, kKeys);
    const std::string instruction = text("INSTRUCTION");
    if (instruction == "CONSTANT") {
      define(text("NAME"), add_storage(true));
    } else if (instruction == "MEMORY") {
      read_memory();
    } else if (instruction == "ALIAS") {
      read_alias();
    } else if (instruction == "CALL") {
      read_call();
    } else if (instruction == "MUTATE") {
      read_mutate();
    } else if (instruction == "COPY" || instruction == "COPY_FROM") {
      define(text("DST"), storage_of(text("SRC")));
    } else if (instruction == "RELEASE") {
      release(text("NAME"));
    } else if (instruction == "ANNOTATE") {
      annotate(text("ANNOTATION"));
    } else {
      place_.fail(fmt::format("the instruction '{}' is unknown", instruction));
    }
  }

  void annotate(const std::string& annotation) {
    if (annotation == "BACKWARD") backward_ = true;
    if (annotation != "START" || in_step_) return;
    in_step_ = true;
    backward_ = false;
    // Operations before START are not part of the step. The storages that they have left in memory exist during the
    // whole step.
    trace_.operations.clear();
    definitions_.clear();
    for (Storage& storage : trace_.storages) {
      storage.resident = true;
      if (storage.references == 0) storage.bytes = 0;
    }
  }

  void read_memory() {
    const std::int64_t bytes = number("MEMORY");
    if (bytes < 0 || bytes > kSumLimit) place_.fail(fmt::format("MEMORY is {}, not between 0 and 2^62", bytes));
    // The bytes of a view are ignored, because a view has no storage of its own.
    if (!is_view(text("NAME"))) trace_.storages[storage_of(text("NAME"))].bytes = bytes;
  }

  bool is_view(const std::string& name) const {
    const auto found = definitions_.find(name);
    return found != definitions_.end() &&
           trace_.operations[found->second.operation].results[found->second.result] == kNoStorage;
  }

  /// Fails if an instruction after the CALL has used a tensor of which an ALIAS says only now that it is a view. That
  /// instruction would then depend on a storage that nothing computes.
  void require_unused(const std::string& name, std::size_t call, StorageId storage) const {
    bool used = trace_.storages[storage].references > 1;
    for (std::size_t i = call + 1; i < trace_.operations.size() && !used; ++i) {
      const Operation& later = trace_.operations[i];
      used = std::ranges::find(later.args, storage) != later.args.end() ||
             std::ranges::find(later.mutated, storage) != later.mutated.end();
    }
    if (used) place_.fail(fmt::format("the ALIAS of '{}' must come before '{}' is used", name, name));
  }

  void read_alias() {
    const std::string name = text("NAME");
    const std::int64_t alias = number("ALIAS");
    if (alias == -1) return;
    const auto found = definitions_.find(name);
    if (found == definitions_.end())
      place_.fail(fmt::format("'{}' is not a result of a CALL, so it cannot be a view", name));
    const auto [index, result] = found->second;
    Operation& operation = trace_.operations[index];
    if (alias < 0 || alias >= static_cast<std::int64_t>(operation.args.size())) {
      place_.fail(fmt::format("ALIAS is {}, but {} has {} arguments (-1: storage of its own)", alias, operation.name,
                              operation.args.size()));
    }
    if (operation.results[result] == kNoStorage) return;
    require_unused(name, index, operation.results[result]);
    trace_.storages[operation.results[result]].bytes = 0;
    operation.results[result] = kNoStorage;
    const StorageId viewed = operation.args[static_cast<std::size_t>(alias)];
    operation.viewed.push_back(viewed);
    define(name, viewed);
    definitions_[name] = {index, result};
  }

  void read_call() {
    Operation operation = read_operation();
    const Json& results = require_array(line_, "RESULT", place_);
    std::vector<std::string> names;
    for (const Json& result : results) {
      names.push_back(element_name(result, "RESULT"));
      operation.results.push_back(add_storage(!in_step_));
    }
    for (std::size_t r = 0; r < names.size(); ++r) {
      define(names[r], operation.results[r]);
      definitions_[names[r]] = {trace_.operations.size(), r};
    }
    trace_.operations.push_back(std::move(operation));
  }

  void read_mutate() {
    Operation operation = read_operation();
    for (const Json& index : require_array(line_, "MUTATE", place_)) {
      const auto arg = to_index(index, static_cast<std::int64_t>(operation.args.size()), "MUTATE", place_);
      operation.mutated.push_back(operation.args[static_cast<std::size_t>(arg)]);
    }
    trace_.operations.push_back(std::move(operation));
  }

  Operation read_operation() {
    Operation operation;
    operation.name = text("NAME");
    operation.time = number("TIME");
    operation.line = place_.index;
    operation.backward = backward_;
    for (const Json& arg : require_array(line_, "ARGS", place_)) {
      operation.args.push_back(storage_of(element_name(arg, "ARGS")));
    }
    return operation;
  }

  StorageId add_storage(bool resident) {
    trace_.storages.push_back({.line = place_.index, .resident = resident});
    return static_cast<StorageId>(trace_.storages.size()) - 1;
  }

  void define(const std::string& name, StorageId storage) {
    ++trace_.storages[storage].references;
    const auto [entry, is_new] = tensors_.emplace(name, storage);
    if (!is_new) --trace_.storages[std::exchange(entry->second, storage)].references;
    definitions_.erase(name);
  }

  void release(const std::string& name) {
    --trace_.storages[storage_of(name)].references;
    tensors_.erase(name);
    definitions_.erase(name);
  }

  StorageId storage_of(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      place_.fail(fmt::format("'{}' was never defined or is already released; is the trace complete?", name));
    }
    return found->second;
  }

  std::string text(const char* key) const {
    require(line_, key, place_);
    return string_or(line_, key, place_, "");
  }
  std::string element_name(const Json& value, const char* key) const {
    if (!value.is_string()) place_.fail(fmt::format("\"{}\" must list tensors, not {}", key, describe(value)));
    return value.get<std::string>();
  }
  /// Returns the number under a key. Traces write numbers as strings.
  std::int64_t number(const char* key) const {
    const Json& value = require(line_, key, place_);
    if (!value.is_string()) return to_int(value, key, place_);
    const auto& digits = value.get_ref<const std::string&>();
    std::int64_t number = 0;
    const NumberFault fault = parse_whole(digits, number);
    if (fault == NumberFault::too_large)
      place_.fail(fmt::format("\"{}\" is {}, which does not fit into 64 bits", key, describe(value)));
    if (fault != NumberFault::none)
      place_.fail(fmt::format("\"{}\" must be a whole number, not {}", key, describe(value)));
    return number;
  }

  std::string_view text_;
  Place place_;
  ReadWatch watch_;
  Json line_;
  bool in_step_ = false;
  bool backward_ = false;
  Trace trace_;
  std::unordered_map<std::string, StorageId> tensors_;
  std::unordered_map<std::string, Definition> definitions_;
};

/// The second pass over a trace. It converts operations to nodes.
class TraceToGraph {
 public:
  TraceToGraph(Trace trace, std::string_view origin)
      : trace_(std::move(trace)), origin_(origin), version_(trace_.storages.size()) {
    const std::size_t slash = origin.find_last_of('/');
    builder_.set_cost_unit({kNanoseconds, "times of the trace"});
    builder_.set_name(std::string(slash == std::string_view::npos ? origin : origin.substr(slash + 1)));
  }

  Graph convert() {
    std::int64_t resident_bytes = 0;
    for (const Storage& storage : trace_.storages) {
      if (storage.resident) add_bytes(resident_bytes, storage);
    }
    builder_.add_resident_bytes(resident_bytes);
    for (const Operation& operation : trace_.operations) add_operation(operation);
    if (builder_.node_count() > 0) builder_.node(builder_.node_count() - 1).cost += pending_time_;
    for (std::size_t s = 0; s < version_.size(); ++s) {
      if (version_[s] == OutputRef()) continue;
      output(version_[s]).keep = trace_.storages[s].references > 0 || trace_.storages[s].resident;
    }
    set_scratch();
    return build_graph(builder_, origin_);
  }

 private:
  void add_operation(const Operation& operation) {
    if (operation.time < 0 || operation.time > kSumLimit) {
      Place{.origin = origin_, .list = "line", .index = operation.line}.fail(
          fmt::format("TIME is {}, but must be between 0 and 2^62", operation.time));
    }
    if (operation.mutated.empty() && !operation.results.empty() &&
        operation.viewed.size() == operation.results.size()) {
      add_view_time(operation);
    } else {
      add_node(operation);
    }
  }

  void add_view_time(const Operation& operation) {
    const OutputRef maker = version_[operation.viewed.front()];
    add_time(maker == OutputRef() ? pending_time_ : builder_.node(maker.node).cost, operation);
  }

  void add_node(const Operation& operation) {
    Node node;
    node.name = fmt::format("{}#{}", operation.name, builder_.node_count());
    node.backward = operation.backward;
    node.cost = std::exchange(pending_time_, 0);
    add_time(node.cost, operation);
    for (const StorageId s : operation.args) {
      if (version_[s] != OutputRef()) node.inputs.push_back(version_[s]);
    }
    const auto make = [&](StorageId s, std::int64_t bytes, OutputRef inplace) {
      version_[s] = {builder_.node_count(), static_cast<std::int32_t>(node.outputs.size())};
      node.outputs.push_back({bytes, false, inplace, ""});
    };
    for (const StorageId s : operation.mutated) {
      if (version_[s].node == builder_.node_count()) continue;  // the operation lists s twice
      const Storage& storage = trace_.storages[s];
      make(s, storage.resident ? 0 : storage.bytes, storage.resident ? OutputRef() : version_[s]);
    }
    for (const StorageId s : operation.results) {
      if (s == kNoStorage) continue;
      std::int64_t bytes = 0;
      add_bytes(bytes, trace_.storages[s]);
      make(s, bytes, OutputRef());
    }
    builder_.add(std::move(node));
  }

  Output& output(OutputRef ref) { return builder_.node(ref.node).outputs[ref.output]; }

  /// Sets the scratch of in-place nodes. If such a node is the only reader of a storage's old version, the new version
  /// takes over the storage of the old version. So the node's scratch is reduced by the size of the old version.
  void set_scratch() {
    std::unordered_map<std::int64_t, std::int32_t> reader_count;
    const auto key = [](OutputRef ref) { return (std::int64_t{ref.node} << 32) + ref.output; };
    for (NodeId v = 0; v < builder_.node_count(); ++v) {
      std::vector<OutputRef>& inputs = builder_.node(v).inputs;
      for (auto input = inputs.begin(); input != inputs.end(); ++input) {
        if (std::find(inputs.begin(), input, *input) == input) ++reader_count[key(*input)];
      }
    }
    for (NodeId v = 0; v < builder_.node_count(); ++v) {
      Node& node = builder_.node(v);
      for (const Output& made : node.outputs) {
        if (made.inplace != OutputRef() && reader_count[key(made.inplace)] == 1) node.scratch -= made.size;
      }
    }
  }

  void add_time(std::int64_t& sum, const Operation& operation) const {
    if (operation.time > kSumLimit - sum) {
      Place{.origin = origin_, .list = "line", .index = operation.line}.fail("the times up to here exceed 2^62");
    }
    sum += operation.time;
  }

  void add_bytes(std::int64_t& sum, const Storage& storage) const {
    const Place place{.origin = origin_, .list = "line", .index = storage.line};
    if (storage.bytes < 0) place.fail("a tensor that is defined here has no MEMORY line; is the trace truncated?");
    if (storage.bytes > kSumLimit - sum) place.fail("the tensors up to here are more than 2^62 bytes");
    sum += storage.bytes;
  }

  Trace trace_;
  std::string_view origin_;
  GraphBuilder builder_;
  std::vector<OutputRef> version_;  ///< output that wrote each storage last; none if nothing in the step has written it
  std::int64_t pending_time_ = 0;
};

}  // namespace

Graph graph_from_simrd(std::string_view text, std::string_view origin, const ReadOptions& options, Notices& notices) {
  Graph graph = TraceToGraph(TraceReader(text, origin, options, notices).read(), origin).convert();
  if (graph.node_count() == 0) {
    throw InputError(fmt::format("{}: the trace ends before any operation of its step; is it truncated?", origin));
  }
  return graph;
}

}  // namespace cairn::core::formats
