// Tests which updates of weights a graph accepts, how files store these updates, and how bf16 changes them.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/precision.h"
#include "cairn/core/support/bf16.h"
#include "cairn/runtime/support/residents.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/parse_error.h"
#include "cairn/tests/support/stored_values.h"

namespace cairn::updates_test {

using namespace cairn::core;

namespace {

/// A graph with a weight that one node reads, the weight's gradient, and a node that updates the weight. Each test
/// changes one part of it.
struct Updated {
  GraphBuilder builder{"updated"};
  std::int32_t input, w, m, v, rate, step;
  NodeId reader, gradient, update;

  explicit Updated(ElementType storage = ElementType::f32) {
    const auto state = [&](const char* name) {
      return add({.name = name, .shape = {2, 3}, .role = Resident::Role::optimizer});
    };
    const auto number = [&](const char* name, double value) {
      return add(
          {.name = name, .shape = {1}, .role = Resident::Role::data, .init = Resident::Init::constant, .scale = value});
    };
    input = add({.name = "input", .shape = {2, 3}, .role = Resident::Role::data, .type = storage});
    w = add({.name = "w", .shape = {2, 3}, .type = storage, .init = Resident::Init::normal, .scale = 0.3});
    m = state("m");
    v = state("v");
    rate = number("rate", 1e-3);
    step = number("step", 1);
    const std::int64_t bytes = 6 * element_bytes(storage);
    const auto scaled = [&](const char* name, std::int32_t of) {
      Op op{.kind = OpKind::scale, .shape = {2, 3}, .args = {Operand::resident(of)}, .type = storage};
      return builder.add({.name = name, .size = bytes, .op = op});
    };
    reader = scaled("reader", w);
    gradient = scaled("gradient", input);
    Op op{.kind = OpKind::adamw, .shape = {2, 3}, .type = storage, .writes = w};
    op.args = {Operand::node(gradient), Operand::resident(w)};
    for (const std::int32_t r : {m, v, rate, step}) op.args.push_back(Operand::resident(r));
    if (storage == ElementType::bf16) {
      Resident master = builder.resident(w);
      master.name = "w.master";
      master.type = ElementType::f32;
      master.role = Resident::Role::optimizer;
      master.master_of = w;
      op.args[1] = Operand::resident(add(master));
    }
    update = builder.add({.name = "update", .keep = true, .inputs = {gradient}, .op = op});
    builder.node(update).pinned = true;
    builder.add_control_input(update, reader);
  }

  std::int32_t add(Resident resident) { return builder.add_resident(std::move(resident)); }
  Op& op() { return *builder.node(update).op; }

  /// Adds a second node with the op of the update, which also reads the same gradient. Returns the op, so that the
  /// test can change it.
  Op& add_again() {
    Node again = builder.node(update);
    again.name = "again";
    again.inputs = {gradient};
    again.outputs = {{}};
    return *builder.node(builder.add(std::move(again))).op;
  }
};

/// Makes the change, builds the graph, and returns the error message of the refusal.
std::string refusal(const std::function<void(Updated&)>& change, ElementType storage = ElementType::f32) {
  return tests::error_of([&] {
    Updated graph(storage);
    change(graph);
    graph.builder.build();
  });
}

void check_refusal(const std::function<void(Updated&)>& change, const std::vector<std::string>& parts,
                   ElementType storage = ElementType::f32) {
  tests::check_line(refusal(change, storage), parts);
}

std::vector<double> initial_values(const Graph& graph, std::int32_t index) {
  const Resident& resident = graph.residents()[static_cast<std::size_t>(index)];
  std::vector<std::byte> bytes(static_cast<std::size_t>(resident.bytes()));
  runtime::fill_resident(resident, index, 5, bytes);
  return tests::stored_values(bytes, resident.type);
}

}  // namespace

TEST_CASE("a graph may update a weight that other nodes read") {
  const auto nothing = [](Updated&) {};
  CHECK(refusal(nothing).empty());
  CHECK(refusal(nothing, ElementType::bf16).empty());
  CHECK(refusal([](Updated& g) {
          Op& again = g.add_again();  // the second node updates another weight, with the same learning rate
          again.writes = g.add({.name = "w2", .shape = {2, 3}});
          again.args[1] = Operand::resident(again.writes);
          for (const std::size_t i : {2, 3}) again.args[i] = Operand::resident(g.add({.name = "s", .shape = {2, 3}}));
        }).empty());
}

TEST_CASE("updates that are not pinned or write no weight, or another one, are refused") {
  check_refusal([](Updated& g) { g.builder.node(g.update).pinned = false; }, {"'update'", "adamw", "must be pinned"});
  check_refusal([](Updated& g) { g.op().writes = -1; }, {"'update'", "must write a resident"});
  check_refusal(
      [](Updated& g) {
        g.op().writes = g.add({.name = "other", .shape = {2, 3}});
      },
      {"must write the weight that it updates, which is resident 1"});
  check_refusal([](Updated& g) { g.builder.node(g.update).size = 24; }, {"its size must be 0"});
  check_refusal([](Updated& g) { g.op().writes = g.op().args[1].index; }, {"'w.master'", "no bf16 tensor"},
                ElementType::bf16);
}

TEST_CASE("an update that overwrites an argument twice, or one that it reads, is refused") {
  check_refusal([](Updated& g) { g.op().args[3] = g.op().args[2]; }, {"are the same tensor"});
  check_refusal([](Updated& g) { g.op().args[2] = g.op().args[1]; }, {"arguments 1 and 2 are the same tensor"});
  check_refusal([](Updated& g) { g.op().args[0] = g.op().args[3]; }, {"arguments 3 and 0 are the same tensor"});
}

TEST_CASE("two writers of a weight, or of its optimizer state, are refused") {
  check_refusal([](Updated& g) { g.add_again(); }, {"'again'", "it writes resident 'w', as does node 'update'"});
  check_refusal(
      [](Updated& g) {
        Op& again = g.add_again();
        again.writes = g.add({.name = "w2", .shape = {2, 3}});
        again.args[1] = Operand::resident(again.writes);
      },
      {"it writes resident 'm', as does node 'update'"});
  check_refusal(
      [](Updated& g) {
        Op scale{.kind = OpKind::scale, .shape = {2, 3}, .args = {Operand::resident(g.input)}, .writes = g.w};
        g.builder.add({.name = "overwrite", .op = scale});
      },
      {"it writes resident 'w', as does node 'update'"});
  check_refusal(
      [](Updated& g) {
        Op& again = g.add_again();  // updates another fp32 copy, but writes the same bf16 weight
        for (const std::size_t i : {1, 2, 3}) again.args[i] = Operand::resident(g.add({.name = "s", .shape = {2, 3}}));
      },
      {"it writes resident 'w', as does node 'update'"}, ElementType::bf16);
}

TEST_CASE("updates with wrong shapes, types or kinds of arguments are refused") {
  for (const std::size_t i : {2, 3}) {
    check_refusal([&](Updated& g) { g.builder.resident(g.op().args[i].index).shape = {6}; }, {"'update'", "adamw"});
  }
  for (const std::size_t i : {4, 5}) {
    check_refusal([&](Updated& g) { g.builder.resident(g.op().args[i].index).shape = {2}; }, {"'update'", "adamw"});
  }
  for (const std::size_t i : {2, 3, 4}) {
    check_refusal([&](Updated& g) { g.builder.resident(g.op().args[i].index).type = ElementType::bf16; },
                  {"argument " + std::to_string(i) + " must be of type f32"});
    check_refusal([&](Updated& g) { g.builder.resident(g.op().args[i].index).type = ElementType::i32; },
                  {"argument " + std::to_string(i) + " must be of type f32"});
  }
  for (const std::size_t i : {1, 2, 3}) {
    check_refusal([&](Updated& g) { g.op().args[i] = Operand::node(g.gradient); },
                  {"argument " + std::to_string(i) + " must be a resident tensor"});
  }
}

TEST_CASE("an fp32 copy of a weight has another type or shape than the weight: refused") {
  const auto master = [](Updated& g) -> Resident& { return g.builder.resident(g.op().args[1].index); };
  check_refusal([&](Updated& g) { master(g).shape = {6}; }, {"'w.master' is the fp32 copy of 'w'", "of one shape"},
                ElementType::bf16);
  check_refusal([&](Updated& g) { master(g).type = ElementType::bf16; }, {"'w.master' is the fp32 copy of 'w'"},
                ElementType::bf16);
  check_refusal([&](Updated& g) { master(g).master_of = g.m; }, {"'w.master' is the fp32 copy of 'm'"},
                ElementType::bf16);
  check_refusal([&](Updated& g) { master(g).master_of = 99; }, {"there is no resident 99"}, ElementType::bf16);
}

TEST_CASE("files hold updates, constants and fp32 copies", "[formats]") {
  Updated updated(ElementType::bf16);
  updated.op().attrs = {.eps = 1e-7, .beta1 = 0.85, .beta2 = 0.97, .decay = 0.015, .limit = 0.7};
  const Graph graph = updated.builder.build();
  const std::string text = graph_to_json(graph);
  const Graph read = parse_graph(text, "g.json");
  CHECK(graph_to_json(read) == text);
  CHECK(std::ranges::equal(read.residents(), graph.residents()));
  CHECK(read.residents().back().master_of == updated.w);
  CHECK(read.residents()[static_cast<std::size_t>(updated.rate)].init == Resident::Init::constant);
  CHECK(*read.op(updated.update) == *graph.op(updated.update));
  CHECK(read.pinned(updated.update));

  const auto changed = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return tests::parse_error(std::string(text).replace(at, from.size(), to), "g.json");
  };
  tests::check_line(changed("\"master_of\":1", "\"master_of\":77"), {"\"master_of\" names 77"});
  tests::check_line(changed("\"beta2\":0.97", "\"beta2\":\"x\""), {"\"beta2\"", "number"});
  tests::check_line(changed("\"beta2\":0.97", "\"beta2\":1.5"), {"beta2 is 1.5"});
  tests::check_line(changed("\"constant\"", "\"constnat\""), {"did you mean 'constant'?"});
}

TEST_CASE("bf16: weights that an update changes get an fp32 copy with the same values, norms stay fp32") {
  for (const tests::TinyModel& tiny : tests::tiny_models()) {
    for (const char* optimizer : {"sgd", "adamw"}) {
      INFO(tiny.name << " " << optimizer);
      models::BuildOptions options = tiny.options;
      options.optimizer = optimizer;
      const Graph single = models::build_model(tiny.name, options);
      const Graph half = with_precision(single, Precision::bf16);
      CHECK(with_precision(half, Precision::bf16).fingerprint() == half.fingerprint());
      CHECK(graph_to_json(parse_graph(graph_to_json(half), "g.json")) == graph_to_json(half));
      std::int64_t bytes = single.resident_bytes(), masters = 0;
      for (std::size_t r = 0; r < single.residents().size(); ++r) {
        const Resident& now = half.residents()[r];
        if (now.type == ElementType::bf16) bytes -= now.bytes();
      }
      for (NodeId v = 0; v < half.node_count(); ++v) {
        const Op& op = *half.op(v);
        if (!is_update(op.kind)) continue;
        const Resident& weight = half.residents()[static_cast<std::size_t>(op.writes)];
        const Resident& before = single.residents()[static_cast<std::size_t>(op.writes)];
        CHECK(op.type == weight.type);
        for (const std::size_t i : updated_args(op.kind))
          CHECK(half.residents()[static_cast<std::size_t>(op.args[i].index)].type == ElementType::f32);
        CHECK((weight.type == ElementType::f32) == (before.init == Resident::Init::norm_params));
        if (weight.type == ElementType::f32) {
          CHECK(op.args[1] == Operand::resident(op.writes));
          continue;
        }
        ++masters;
        const Resident& master = half.residents()[static_cast<std::size_t>(op.args[1].index)];
        Resident expected = before;
        expected.name += ".master";
        expected.role = Resident::Role::optimizer;
        expected.master_of = op.writes;
        CHECK(master == expected);
        bytes += master.bytes();
        const std::vector<double> exact = initial_values(half, op.args[1].index);
        CHECK(exact == initial_values(single, op.writes));
        std::vector<double> rounded;
        for (const double x : exact) rounded.push_back(static_cast<float>(Bf16(static_cast<float>(x))));
        CHECK(rounded == initial_values(half, op.writes));
      }
      CHECK(masters > 0);
      CHECK(std::ssize(half.residents()) == std::ssize(single.residents()) + masters);
      CHECK(half.resident_bytes() == bytes);
    }
  }
}

}  // namespace cairn::updates_test
