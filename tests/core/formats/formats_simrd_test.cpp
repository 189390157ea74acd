#include <algorithm>
#include <string>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/parse_error.h"

namespace cairn::formats_simrd_test {

using namespace cairn::core;

namespace {

/// Builds a trace line by line. Like the program that a trace records, it also tracks how many bytes are in storages
/// with at least one reference, and the peak of these bytes.
class TraceWriter {
 public:
  void annotate(const std::string& what) { line(R"("INSTRUCTION":"ANNOTATE","ANNOTATION":")" + what + "\""); }
  void constant(const std::string& name, std::int64_t bytes) {
    line(R"("INSTRUCTION":"CONSTANT","NAME":")" + name + "\"");
    memory(name, bytes);
  }
  struct Result {
    std::string name;
    std::int64_t bytes;
    int alias = -1;
  };
  void call(const std::string& op, std::int64_t time, const std::vector<std::string>& args,
            const std::vector<Result>& results) {
    std::vector<std::string> names;
    for (const Result& result : results) names.push_back(result.name);
    line(R"("INSTRUCTION":"CALL","NAME":")" + op + R"(","ARGS":)" + list(args) + R"(,"RESULT":)" + list(names) +
         R"(,"TIME":")" + std::to_string(time) + "\"");
    for (const Result& result : results) {
      memory(result.name, result.bytes);
      line(R"("INSTRUCTION":"ALIAS","NAME":")" + result.name + R"(","ALIAS":")" + std::to_string(result.alias) + "\"");
      if (result.alias < 0) live_ += result.bytes;
    }
    peak_ = std::max(peak_, live_);
  }
  void mutate(const std::string& op, std::int64_t time, const std::vector<std::string>& args, int mutated = 0) {
    line(R"("INSTRUCTION":"MUTATE","NAME":")" + op + R"(","ARGS":)" + list(args) + R"(,"MUTATE":[)" +
         std::to_string(mutated) + R"(],"TIME":")" + std::to_string(time) + "\"");
  }
  void copy(const std::string& from, const std::string& to) {
    line(R"("INSTRUCTION":"COPY","SRC":")" + from + R"(","DST":")" + to + "\"");
  }
  /// Drops one reference. If it is the last one to its storage, `freed` must be the bytes of the storage.
  void release(const std::string& name, std::int64_t freed = 0) {
    line(R"("INSTRUCTION":"RELEASE","NAME":")" + name + "\"");
    live_ -= freed;
  }

  const std::string& text() const { return text_; }
  std::int64_t peak() const { return peak_; }
  Graph graph() const { return parse_graph(text_, "dir/t.log"); }

 private:
  void line(const std::string& fields) { text_ += "{" + fields + "}\n"; }
  void memory(const std::string& name, std::int64_t bytes) {
    line(R"("INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":")" + std::to_string(bytes) + "\"");
  }
  static std::string list(const std::vector<std::string>& names) {
    std::string text = "[";
    for (const std::string& name : names) text += (text.size() > 1 ? ",\"" : "\"") + name + "\"";
    return text + "]";
  }

  std::string text_;
  std::int64_t live_ = 0, peak_ = 0;
};

std::int64_t baseline_peak(const Graph& graph) { return evaluate(graph, baseline_schedule(graph)).peak; }

std::vector<OutputRef> inputs(const Graph& graph, NodeId v) {
  std::vector<OutputRef> refs;
  for (const ValueId x : graph.inputs(v)) refs.push_back(graph.output_ref(x));
  return refs;
}

std::string trace_error(const std::string& text) { return cairn::tests::parse_error(text, "t.log"); }

}  // namespace

TEST_CASE("a small training step becomes the graph that its references describe", "[formats][simrd]") {
  // The step is x -> conv -> bias (added in place through a view) -> norm -> relu in place -> loss. The backward pass
  // computes the gradients of x and of the weight w. The gradient of w is still referenced when the trace ends.
  TraceWriter trace;
  trace.annotate("START");
  trace.constant("w", 100);
  trace.copy("w", "w2");
  trace.release("w");
  trace.constant("x", 40);
  trace.call("conv", 50, {"x", "w2"}, {{"h", 1000}});
  trace.call("view", 3, {"h"}, {{"hv", 1000, 0}});
  trace.call("view", 2, {"w2"}, {{"wv", 100, 0}});
  trace.mutate("add_", 10, {"hv", "wv"});
  trace.call("norm", 20, {"h"}, {{"n", 1000}, {"mean", 8}});
  trace.release("hv");
  trace.release("wv");
  trace.release("h", 1000);
  trace.mutate("relu_", 5, {"n"});
  trace.call("loss", 7, {"n"}, {{"l", 4}});
  trace.annotate("BACKWARD");
  trace.call("ones_like", 1, {"l"}, {{"dl", 4}});
  trace.call("norm_backward", 30, {"dl", "n", "mean"}, {{"dh", 1000}});
  trace.release("dl", 4);
  trace.release("n");
  trace.release("mean", 1008);
  trace.call("conv_backward", 60, {"dh", "x", "w2"}, {{"dx", 40}, {"dw", 100}});
  trace.release("dh", 1000);
  trace.call("use", 9, {"dx"}, {{"u", 0}});
  trace.release("dx", 40);
  trace.release("u");
  const Graph graph = trace.graph();

  CHECK(graph.name() == "t.log");
  CHECK(graph.resident_bytes() == 140);
  std::vector<std::string> names;
  std::int64_t cost = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    names.push_back(graph.name(v));
    cost += graph.cost(v);
    CHECK(graph.backward(v) == (v >= 5));
  }
  CHECK(names == std::vector<std::string>{"conv#0", "add_#1", "norm#2", "relu_#3", "loss#4", "ones_like#5",
                                          "norm_backward#6", "conv_backward#7", "use#8"});
  CHECK(cost == 50 + 3 + 2 + 10 + 20 + 5 + 7 + 1 + 30 + 60 + 9);
  CHECK(graph.cost(0) == 53);  // 50 for the op, and 3 for the view of its output
  // 10 for the op, and 2 for a view of a constant. The cost of such a view is added to the next op.
  CHECK(graph.cost(1) == 12);

  // A mutation becomes an in-place node, which takes over the storage of the mutated tensor. The norm's statistics
  // become a second output of the norm.
  CHECK(graph.inplace(1) == 0);
  CHECK(graph.size(1) == 1000);
  CHECK(graph.scratch(1) == -1000);
  CHECK(inputs(graph, 2) == std::vector<OutputRef>{1});
  REQUIRE(graph.output_count(2) == 2);
  CHECK(graph.value_size(graph.value(2)) == 1000);
  CHECK(graph.value_size(graph.value({2, 1})) == 8);
  CHECK(graph.inplace(graph.value(3)) == graph.value(2));
  CHECK(graph.scratch(3) == -1000);
  CHECK(inputs(graph, 6) == std::vector<OutputRef>{5, 3, {2, 1}});

  // The gradient of the weight and the loss are kept, because they are still referenced when the trace ends. The
  // gradient of x is not kept.
  REQUIRE(graph.output_count(7) == 2);
  CHECK(graph.value_size(graph.value(7)) == 40);
  CHECK_FALSE(graph.value_kept(graph.value(7)));
  CHECK(graph.value_size(graph.value({7, 1})) == 100);
  CHECK(graph.value_kept(graph.value({7, 1})));
  CHECK(inputs(graph, 8) == std::vector<OutputRef>{7});
  CHECK(graph.keep(4));

  CHECK(baseline_peak(graph) == trace.peak());
}

TEST_CASE("an in-place update of what others have read counts both versions", "[formats][simrd]") {
  TraceWriter trace;
  trace.annotate("START");
  trace.call("make", 1, {}, {{"a", 10}});
  trace.call("read", 1, {"a"}, {{"b", 1}});
  trace.mutate("relu_", 1, {"a"});
  const Graph graph = trace.graph();
  CHECK(graph.inplace(2) == 0);
  CHECK(graph.scratch(2) == 0);
  CHECK(graph.keep(2));
  CHECK_FALSE(graph.keep(0));
}

TEST_CASE("a mutated constant is a kept node without bytes that later readers read", "[formats][simrd]") {
  TraceWriter trace;
  trace.annotate("START");
  trace.constant("w", 10);
  trace.call("grad", 1, {"w"}, {{"g", 10}});
  trace.mutate("sub_", 1, {"w", "g"});
  trace.call("read", 1, {"w"}, {{"r", 1}});
  trace.release("w");
  trace.release("g");
  trace.release("r");
  const Graph graph = trace.graph();
  REQUIRE(graph.node_count() == 3);
  CHECK(graph.size(1) == 0);
  CHECK(graph.keep(1));
  CHECK(graph.inplace(1) == kNoNode);
  CHECK(inputs(graph, 0).empty());
  CHECK(inputs(graph, 1) == std::vector<OutputRef>{0});
  CHECK(inputs(graph, 2) == std::vector<OutputRef>{1});
}

TEST_CASE("several mutated storages are in-place outputs of one node", "[formats][simrd]") {
  TraceWriter trace;
  trace.annotate("START");
  trace.call("make", 1, {}, {{"a", 10}});
  trace.call("make", 1, {}, {{"b", 20}});
  std::string text = trace.text();
  text += R"({"INSTRUCTION":"MUTATE","NAME":"swap_","ARGS":["a","b"],"MUTATE":[0,1],"TIME":7})";
  const Graph graph = parse_graph(text, "t.log");
  REQUIRE(graph.node_count() == 3);
  REQUIRE(graph.output_count(2) == 2);
  CHECK(graph.inplace(graph.value({2, 0})) == 0);
  CHECK(graph.inplace(graph.value({2, 1})) == 1);
  CHECK(inputs(graph, 2) == std::vector<OutputRef>{0, 1});
  CHECK(graph.scratch(2) == -30);
  CHECK(graph.cost(2) == 7);
  CHECK(graph.keep(2));
}

TEST_CASE("what exists before START is resident", "[formats][simrd]") {
  TraceWriter trace;
  trace.constant("w", 10);
  trace.call("warm_up", 99, {"w"}, {{"a", 5}, {"gone", 7}});
  trace.release("gone");
  trace.annotate("START");
  trace.call("step", 1, {"a"}, {{"b", 3}});
  const Graph graph = trace.graph();
  REQUIRE(graph.node_count() == 1);
  CHECK(graph.resident_bytes() == 15);
  CHECK(inputs(graph, 0).empty());
}

TEST_CASE("a backward pass before START does not mark the step", "[formats][simrd]") {
  TraceWriter trace;
  trace.call("warm_up", 9, {}, {{"w", 5}});
  trace.annotate("BACKWARD");
  trace.annotate("START");
  trace.call("f", 1, {}, {{"a", 3}});
  trace.annotate("BACKWARD");
  trace.call("g", 1, {"a"}, {{"b", 3}});
  const Graph graph = trace.graph();
  REQUIRE(graph.node_count() == 2);
  CHECK_FALSE(graph.backward(0));
  CHECK(graph.backward(1));
}

TEST_CASE("a view that is used before its ALIAS is refused", "[formats][simrd]") {
  const std::string made = R"({"INSTRUCTION":"CALL","NAME":"f","RESULT":["x"],"ARGS":[],"TIME":"5"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"1000"}
{"INSTRUCTION":"CALL","NAME":"view","RESULT":["v"],"ARGS":["x"],"TIME":"5"}
{"INSTRUCTION":"MEMORY","NAME":"v","MEMORY":"7"}
)";
  const std::string alias = R"({"INSTRUCTION":"ALIAS","NAME":"v","ALIAS":"0"})";
  for (const std::string used : {R"({"INSTRUCTION":"COPY","DST":"w","SRC":"v"})",
                                 R"({"INSTRUCTION":"CALL","NAME":"g","RESULT":[],"ARGS":["v"],"TIME":"5"})"}) {
    const std::string message = trace_error(made + used + "\n" + alias);
    CHECK(message == "t.log: line 6: the ALIAS of 'v' must come before 'v' is used");
  }
}

TEST_CASE("a defined name may be used again", "[formats][simrd]") {
  TraceWriter trace;
  trace.annotate("START");
  trace.call("one", 1, {}, {{"a", 5}});
  trace.call("two", 1, {"a"}, {{"a", 6}});
  trace.call("three", 1, {"a"}, {{"b", 7}});
  const Graph graph = trace.graph();
  REQUIRE(graph.node_count() == 3);
  CHECK(inputs(graph, 2) == std::vector<OutputRef>{1});
  CHECK_FALSE(graph.keep(0));
  CHECK(graph.keep(1));
}

TEST_CASE("damaged traces are refused with the line", "[formats][simrd]") {
  const std::string start = R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"})";
  const auto check = [&](const std::string& line, const std::string& part) {
    const std::string message = trace_error(start + "\n" + line);
    INFO(line);
    INFO(message);
    CHECK(message.find("t.log: line 2") == 0);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  };
  check(R"({"INSTRUCTION":"CALL","NAME":"x)", "truncated");
  check("[1]", "object");
  check("{}", "\"INSTRUCTION\" is missing");
  check(R"({"INSTRUCTION":"FROB"})", "FROB");
  check(R"({"INSTRUCTION":"RELEASE","NAME":"nope"})", "'nope' was never defined");
  check(R"({"INSTRUCTION":"COPY","SRC":"nope","DST":"d"})", "'nope'");
  check(R"({"INSTRUCTION":"COPY","DST":"d"})", "\"SRC\" is missing");
  check(R"({"INSTRUCTION":"MEMORY","NAME":"nope","MEMORY":"5"})", "'nope'");
  check(R"({"INSTRUCTION":"ALIAS","NAME":"nope","ALIAS":"0"})", "'nope'");
  check(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":["nope"],"RESULT":[],"TIME":"1"})", "'nope'");
  check(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[3],"RESULT":[],"TIME":"1"})", "\"ARGS\"");
  check(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"RESULT":["r"],"TIME":"soon"})", "\"TIME\"");
  check(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"RESULT":[],"TIME":-1})", "TIME is -1");
  check(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"RESULT":["r"],"TIME":"1"})", "MEMORY");
  check(R"({"INSTRUCTION":"MUTATE","NAME":"f","ARGS":[],"MUTATE":[0],"TIME":"1"})", "\"MUTATE\"");
  check(R"({"INSTRUCTION":"CONSTANT","NAME":"c"})", "MEMORY");
  CHECK(trace_error(R"({"INSTRUCTION":"CONSTANT","NAME":"START"})").find("MEMORY") == std::string::npos);
}

}  // namespace cairn::formats_simrd_test
