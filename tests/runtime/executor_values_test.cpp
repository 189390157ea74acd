// Tests how values get into and out of an executor of the host, and tests steps that update weights.
#include <cmath>
#include <limits>
#include <string>

#include "cairn/core/error.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/support/residents.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::executor_values_test {
namespace {

using core::Graph;
using core::InputError;
using runtime::Executor;
using runtime::MutableTensorView;
using runtime::TensorView;

using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

template <class F>
std::string refusal(const F& call) {
  const std::string message = error_of<InputError>(call);
  check_line(message);
  return message;
}

/// Returns the loss of the perceptron if all its outputs are 0 and the targets are `target`.
float loss_of_zeros(const Floats& target) {
  double sum = 0;
  for (const float y : target) sum += static_cast<double>(y) * static_cast<double>(y);
  return static_cast<float>(sum / static_cast<double>(target.size()));
}

}  // namespace

TEST_CASE("values are set and read by name, and the next step uses them") {
  const Perceptron p = perceptron();
  const auto executor = runtime::host_executor(compiled(p.graph));
  executor->run();
  const Outputs before = outputs_of(*executor);
  Floats x(35), target(15), loss(1);
  executor->get("x", x);
  executor->get("target", target);
  executor->set("x", x);
  executor->run();
  CHECK(outputs_of(*executor) == before);

  executor->set("x", Floats(35, 0));
  executor->get("x", x);
  CHECK(x == Floats(35, 0));
  executor->run();
  executor->get_output("loss", loss);
  CHECK(loss[0] == Approx(loss_of_zeros(target)));
  Floats gradient(63);
  executor->get_output("dw1", gradient);
  CHECK(gradient == Floats(63, 0));
  const Floats other(15, 2);
  executor->set("target", {other.data(), core::ElementType::f32, 15});
  executor->enqueue();
  executor->wait();
  executor->get_output("loss", loss);
  CHECK(loss[0] == Approx(4));
  executor->reset();
  executor->run();
  CHECK(outputs_of(*executor) == before);
}

TEST_CASE("wrong names, shapes, types and elements are refused, and nothing changes") {
  const Perceptron p = perceptron();
  const auto executor = runtime::host_executor(compiled(p.graph));
  executor->run();
  const Outputs before = outputs_of(*executor);
  Floats room(63);
  for (const bool staged : {false, true}) {
    const auto give = [&](const char* name, const TensorView& values) {
      return refusal([&] { staged ? executor->stage(name, values) : executor->set(name, values); });
    };
    CHECK(contains(give("targe", Floats(15)), "'perceptron' has no resident tensor 'targe'; did you mean 'target'?"));
    CHECK(contains(give("x", Floats(34)), "resident 'x' (f32 [5, 7]) has 35 elements, but 34 are given"));
    CHECK(contains(give("x", Integers(35)), "resident 'x' (f32 [5, 7]) does not take elements of type i32"));
    CHECK(contains(give("x", {room.data(), core::ElementType::bf16, 35}), "elements of type bf16"));
    CHECK(contains(give("x", {room.data(), core::ElementType::f32, 35, true}), "cannot reach memory of a GPU"));
    const auto shaped = [&](core::Shape shape) {
      return give("x", {room.data(), core::ElementType::f32, std::move(shape)});
    };
    CHECK(contains(shaped({7, 5}), "'x' (f32 [5, 7]) has the shape [5, 7], but values of the shape [7, 5] are given"));
    CHECK(contains(shaped({35, 1}), "but values of the shape [35, 1] are given"));
    CHECK(contains(shaped({5, 6}), "but values of the shape [5, 6] are given"));
    Floats bad(35, 1);
    bad[20] = std::nanf("");
    CHECK(contains(give("x", bad), "element 20 for resident 'x' (f32 [5, 7]) is NaN"));
  }
  CHECK(contains(refusal([&] { executor->get("w1.gard", room); }), "did you mean 'w1.grad'?"));
  CHECK(contains(refusal([&] { executor->get("w2", room); }), "has 27 elements, but 63 are given"));
  Integers integers(63);
  CHECK(contains(refusal([&] { executor->get("w1", integers); }), "elements of type i32"));
  CHECK(contains(refusal([&] { executor->get("w1", {room.data(), core::ElementType::f32, 63, true}); }), "GPU"));
  CHECK(contains(refusal([&] { executor->get_output("los", room); }), "did you mean 'loss'?"));
  CHECK(contains(refusal([&] { executor->get_output("loss", room); }), "output 0 of node 'loss' has 1 elements"));
  CHECK(contains(refusal([&] { executor->get_output("hidden", room); }), "keeps no output 0 of a node 'hidden'"));
  const auto in_shape = [&](core::Shape shape) {
    return MutableTensorView(room.data(), core::ElementType::f32, std::move(shape));
  };
  CHECK(contains(refusal([&] { executor->get("w1", in_shape({9, 7})); }), "has the shape [7, 9], but values of the"));
  CHECK(contains(refusal([&] {
                   executor->get_output("dw1", in_shape({9, 7}));
                 }),
                 "output 0 of node 'dw1' has the shape [7, 9], but values of the shape [9, 7] are given"));
  executor->get("w1", in_shape({7, 9}));
  executor->get_output("dw1", in_shape({7, 9}));
  for (const std::int32_t output : {1, -1}) {
    CHECK(contains(refusal([&] { executor->get_output("loss", {room.data(), {}, 1}, output); }), "keeps no output"));
  }
  executor->run();
  CHECK(outputs_of(*executor) == before);
}

TEST_CASE("infinite values are passed on") {
  const Perceptron p = perceptron();
  const auto executor = runtime::host_executor(compiled(p.graph));
  executor->set("target", Floats(15, std::numeric_limits<float>::infinity()));
  executor->run();
  Floats loss(1);
  executor->get_output("loss", loss);
  CHECK(loss[0] == std::numeric_limits<float>::infinity());
}

TEST_CASE("ids and labels out of range are refused with the op that reads them") {
  const Graph graph = tiny_model("gpt2");
  const auto executor = runtime::host_executor(compiled(graph));
  Integers tokens(12);
  executor->get("tokens", tokens);
  for (const std::int32_t bad : {-1, 11}) {
    Integers wrong = tokens;
    wrong[7] = bad;
    const std::string message = refusal([&] { executor->set("tokens", wrong); });
    check_says(message, {"reads resident 'tokens'", std::to_string(bad) + " at position 7"});
    CHECK(refusal([&] { executor->stage("tokens", wrong); }) == message);
  }
  for (std::int32_t& token : tokens) token = 10;
  executor->set("tokens", tokens);
  CHECK_NOTHROW(executor->run());
}

TEST_CASE("a name that several tensors have, and state that only counts as memory, are refused") {
  core::GraphBuilder builder("twins");
  const Operand first = Operand::resident(builder.add_resident({.name = "x", .shape = {2}}));
  builder.add_resident({.name = "x", .shape = {2}});
  builder.add_resident({.name = "state", .shape = {2}, .role = Resident::Role::optimizer});
  add_op(builder, "y", op_on(OpKind::relu, {2}, {first}));
  const auto executor = runtime::host_executor(compiled(builder.build()));
  Floats two(2);
  CHECK(contains(refusal([&] { executor->set("x", two); }), "several resident tensors 'x'"));
  CHECK(contains(refusal([&] { executor->set("state", two); }), "only counts as memory"));
  CHECK(contains(refusal([&] { executor->stage("state", two); }), "only counts as memory"));
  CHECK(contains(refusal([&] { executor->get("state", two); }), "only counts as memory"));
}

TEST_CASE("staged values take effect with the next step, and only then") {
  const Perceptron p = perceptron();
  const auto executor = runtime::host_executor(compiled(p.graph));
  Floats x(35), old(35), loss(1), target(15);
  executor->get("x", old);
  executor->get("target", target);
  {
    const Floats values(35, 0);
    executor->stage("x", Floats(35, 9));
    executor->stage("x", values);  // replaces the values that were staged before
  }
  executor->get("x", x);
  CHECK(x == old);
  executor->run();
  executor->get("x", x);
  CHECK(x == Floats(35, 0));
  executor->get_output("loss", loss);
  CHECK(loss[0] == Approx(loss_of_zeros(target)));
  executor->set("x", old);
  executor->run();
  executor->get("x", x);
  CHECK(x == old);  // staged values are for one step only, so the old values are back
  executor->stage("x", Floats(35, 0));
  executor->reset();
  executor->run();
  executor->get("x", x);
  CHECK(x == old);
}

TEST_CASE("reset gives weights and optimizer state the values that they began with") {
  for (const Graph& graph : updated_models()) {
    INFO(graph.name());
    const auto executor = runtime::host_executor(compiled(graph));
    std::vector<Outputs> steps;
    for (int i = 0; i < 3; ++i) {
      executor->run();
      steps.push_back(outputs_of(*executor));
      for (int j = 0; j < i; ++j) CHECK_FALSE(steps.back() == steps[static_cast<std::size_t>(j)]);
    }
    executor->reset();
    for (const Outputs& expected : steps) {
      executor->run();
      CHECK(outputs_of(*executor) == expected);
    }
  }
}

TEST_CASE("weights after several steps are the same for every schedule, also with recomputation") {
  Random random(7);
  for (const Graph& graph : updated_models()) {
    INFO(graph.name());
    const std::vector<Outputs> expected = outputs_of_steps(*runtime::host_executor(compiled(graph)), 3);
    for (int i = 0; i < 6; ++i) {
      const core::Schedule schedule = recomputing_schedule(random, graph);
      const auto executor = runtime::host_executor(compiled(graph, schedule), {.poison = true});
      CHECK(outputs_of_steps(*executor, 3) == expected);
    }
  }
}

TEST_CASE("the dropout seed changes the bits of a step, and 0 leaves them alone") {
  Random random(8);
  const Graph graph = tiny_model("gpt2");
  const auto executor = runtime::host_executor(compiled(graph));
  const core::Schedule schedule = recomputing_schedule(random, graph);
  const auto recomputing = runtime::host_executor(compiled(graph, schedule));
  const auto with_seed = [](Executor& of, std::uint64_t seed) {
    of.set_dropout_seed(seed);
    of.run();
    return outputs_of(of);
  };
  executor->run();
  const Outputs before = outputs_of(*executor), one = with_seed(*executor, 1), two = with_seed(*executor, 2);
  CHECK_FALSE(one == before);
  CHECK_FALSE(two == before);
  CHECK_FALSE(two == one);
  CHECK(with_seed(*executor, 1) == one);
  executor->reset();
  executor->run();
  CHECK(outputs_of(*executor) == one);  // reset() restores resident tensors, but does not change the seed
  CHECK(with_seed(*executor, 0) == before);
  CHECK(with_seed(*recomputing, 1) == one);
  CHECK(with_seed(*recomputing, 0) == before);
}

TEST_CASE("a schedule that runs a reader of a weight after its update is refused") {
  core::GraphBuilder builder("late");
  const auto add = [&](const char* name, Shape shape) {
    return Operand::resident(builder.add_resident({.name = name, .shape = std::move(shape)}));
  };
  const Operand w = add("w", {4}), m = add("m", {4}), rate = add("rate", {1});
  const Operand gradient = Operand::node(add_op(builder, "gradient", op_on(OpKind::scale, {4}, {w}, {.alpha = 2})));
  Op op = op_on(OpKind::sgd, {4}, {gradient, w, m, rate});
  op.writes = w.index;
  const core::NodeId update = add_op(builder, "update", op);
  builder.node(update).pinned = true;
  add_op(builder, "reader", op_on(OpKind::relu, {4}, {w}));
  add_op(builder, "reader of m", op_on(OpKind::relu, {4}, {m}));
  const Graph graph = builder.build();
  const auto error = [&](const core::Schedule& schedule) {
    return error_of<InputError>([&] { compiled(graph, schedule); });
  };
  CHECK(error({{0, 2, 3, 1}}).empty());
  check_line(error({{0, 3, 1, 2}}), {"node 'update' reads node 'reader' before it was computed"});
  check_line(error({{0, 2, 1, 3}}), {"node 'update' reads node 'reader of m' before it was computed"});
  check_line(error({{0, 2, 0, 3, 1, 0}}),
             {"step 5 runs node 'gradient', which reads 'w', after node 'update' has updated it"});
}

}  // namespace cairn::tests::executor_values_test
