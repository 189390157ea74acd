// Tests the arena, the resident tensors, and the synthetic kernel, which executes nodes without ops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/runtime/host/kernels/synthetic.h"
#include "cairn/runtime/program.h"
#include "cairn/runtime/support/host_arena.h"
#include "cairn/runtime/support/residents.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::memory_test {
namespace {

std::vector<float> filled(const Resident& resident, std::int32_t index = 0, std::uint64_t seed = 1) {
  Bytes bytes(static_cast<std::size_t>(resident.bytes()));
  runtime::fill_resident(resident, index, seed, bytes);
  return as_floats(bytes);
}

Bytes some_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 256);
  return bytes;
}

Bytes synthetic(std::int32_t node, const std::vector<Bytes>& inputs, std::size_t size) {
  std::vector<std::span<const std::byte>> views(inputs.begin(), inputs.end());
  Bytes out(size);
  const std::span<std::byte> outputs[] = {out};
  runtime::run_synthetic(node, views, outputs);
  return out;
}

}  // namespace

TEST_CASE("the arena hands out aligned addresses and remembers how far they reach") {
  runtime::Arena arena(1000, 256);
  CHECK(reinterpret_cast<std::uintptr_t>(arena.at(0, 0)) % 256 == 0);
  CHECK(arena.high_water() == 0);
  std::byte* start = arena.at(100, 50);
  CHECK(arena.at(0, 10) == start - 100);
  CHECK(arena.high_water() == 150);
  arena.at(990, 10);
  CHECK(arena.high_water() == 1000);
  arena.reset_high_water();
  CHECK(arena.high_water() == 0);
}

TEST_CASE("the arena knows how far up it was written") {
  runtime::Arena arena(1000, 256);
  CHECK(arena.touched() == 0);
  arena.at(100, 50);
  CHECK(arena.touched() == 0);
  *arena.at(300, 1) = std::byte{1};
  CHECK(arena.touched() == 301);
  *arena.at(999, 1) = std::byte{1};
  CHECK(arena.touched() == 1000);
}

TEST_CASE("the arena refuses addresses outside, absurd sizes and odd alignments") {
  runtime::Arena arena(100);
  CHECK_THROWS_AS(arena.at(50, 51), std::out_of_range);
  CHECK_THROWS_AS(arena.at(-1, 1), std::out_of_range);
  CHECK_THROWS_AS(arena.at(0, -1), std::out_of_range);
  CHECK_THROWS_AS(arena.at(std::numeric_limits<std::int64_t>::max(), 8), std::out_of_range);
  CHECK_THROWS_AS(runtime::Arena(std::int64_t{1} << 60), core::DeviceError);
  CHECK_THROWS_AS(runtime::Arena(-1), core::InputError);
  CHECK_THROWS_AS(runtime::Arena(10, 3), core::InputError);
}

TEST_CASE("a step that does not fit says what it asks for, what is free, and the budget that would fit") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const auto text = [&](const runtime::MemoryNeed& need, std::int64_t free) -> std::string {
    return error_of<core::MemoryError>([&] { runtime::require_memory(need, free, "on this card"); });
  };
  CHECK(text({.arena = 700 * kMiB, .beside = 200 * kMiB, .slack = 124 * kMiB}, 1024 * kMiB).empty());
  const std::string message = text({.arena = 800 * kMiB, .beside = 200 * kMiB, .slack = 124 * kMiB}, 1024 * kMiB);
  check_says(message, {"needs 1.10 GiB", "arena 800.00 MiB", "beside it 200.00 MiB", "left free 124.00 MiB",
                       "1.00 GiB are free on this card", "a budget of 700.00 MiB would fit"});
  CHECK(contains(text({.arena = 1, .beside = 2000 * kMiB}, 1024 * kMiB),
                 "besides the arena does not fit, even without an arena"));
  CHECK(
      contains(text({.arena = 900 * kMiB, .beside = 500 * kMiB, .slack = 24 * kMiB, .least = 600 * kMiB}, 1024 * kMiB),
               "no budget below 600.00 MiB can be met"));
  CHECK(runtime::host_slack(0) > 0);
}

TEST_CASE("outputs that a graph keeps count as what a copy of them takes, also where they are resident") {
  const Perceptron p = perceptron();
  std::int64_t bytes = 0, resident = 0;
  for (const runtime::KeptOutput& kept : compiled(p.graph).kept) {
    bytes += kept.location.bytes;
    if (const Op* op = p.graph.op(kept.node); op->writes >= 0) resident += kept.location.bytes;
  }
  CHECK(resident > 0);
  CHECK(runtime::kept_bytes(p.graph) == bytes);
}

TEST_CASE("what the caller takes besides counts") {
  const runtime::Program program = compiled(build_graph({make_node("a", 100)}));
  CHECK_NOTHROW(runtime::host_executor(program, {}));
  CHECK_THROWS_AS(runtime::host_executor(program, {.reserved_bytes = std::int64_t{1} << 60}), core::MemoryError);
}

TEST_CASE("an arena can be moved, and can be empty") {
  runtime::Arena first(64);
  std::byte* address = first.at(0, 64);
  runtime::Arena second = std::move(first);
  CHECK(second.at(0, 1) == address);
  second = runtime::Arena(0);
  CHECK(second.bytes() == 0);
  CHECK_NOTHROW(second.at(0, 0));
}

TEST_CASE("initial values: constants, norm parameters, position encoding") {
  CHECK(filled({.shape = {2, 2}, .init = Resident::Init::zeros}) == std::vector<float>{0, 0, 0, 0});
  CHECK(filled({.shape = {2}, .init = Resident::Init::ones}) == std::vector<float>{1, 1});
  CHECK(filled({.shape = {2, 3}, .init = Resident::Init::norm_params}) == std::vector<float>{1, 1, 1, 0, 0, 0});
  const std::vector<float> positions = filled({.shape = {5, 4}, .init = Resident::Init::sinusoid});
  CHECK(positions[0] == 0);
  CHECK(positions[1] == 1);
  CHECK(positions[3 * 4 + 0] == Approx(std::sin(3.0)));
  CHECK(positions[3 * 4 + 1] == Approx(std::cos(3.0)));
  CHECK(positions[3 * 4 + 2] == Approx(std::sin(0.03)));
}

TEST_CASE("random initial values have their moments and depend on seed and index") {
  const Resident normal{.shape = {20000}, .init = Resident::Init::normal, .scale = 0.5};
  const std::vector<float> values = filled(normal);
  double mean = 0, square = 0;
  for (const float value : values) {
    mean += static_cast<double>(value) / 20000;
    square += static_cast<double>(value) * static_cast<double>(value) / 20000;
  }
  CHECK(mean == Approx(0).margin(0.02));
  CHECK(std::sqrt(square) == Approx(0.5).margin(0.02));
  CHECK(filled(normal) == values);
  CHECK(filled(normal, 1) != values);
  CHECK(filled(normal, 0, 2) != values);

  const std::vector<float> uniform = filled({.shape = {20000}, .init = Resident::Init::uniform, .scale = 3});
  const auto [least, most] = std::minmax_element(uniform.begin(), uniform.end());
  CHECK(*least >= 0);
  CHECK(*least < 0.01f);
  CHECK(*most <= 3);
  CHECK(*most > 2.99f);
}

TEST_CASE("integers are drawn below their scale, other initialisations of integers are refused") {
  Resident ids{
      .name = "ids", .shape = {5000}, .type = Resident::Type::i32, .init = Resident::Init::uniform, .scale = 7};
  Bytes bytes(20000);
  runtime::fill_resident(ids, 0, 1, bytes);
  std::vector<std::int32_t> values(5000), counts(7);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  for (const std::int32_t value : values) {
    REQUIRE(value >= 0);
    REQUIRE(value < 7);
    ++counts[static_cast<std::size_t>(value)];
  }
  CHECK(*std::min_element(counts.begin(), counts.end()) > 600);
  ids.scale = 0;
  CHECK_THROWS_AS(runtime::fill_resident(ids, 0, 1, bytes), core::InputError);
  ids.init = Resident::Init::normal;
  CHECK_THROWS_AS(runtime::fill_resident(ids, 0, 1, bytes), core::InputError);
}

TEST_CASE("optimizer state is counted by the graph, but not allocated") {
  core::GraphBuilder builder;
  builder.add_resident({.shape = {10}, .role = Resident::Role::optimizer});
  builder.add_resident({.shape = {10}, .role = Resident::Role::weight, .init = Resident::Init::ones});
  const core::Graph graph = builder.build();
  CHECK(runtime::Residents::bytes_needed(graph) == 256);
  const runtime::Residents tensors(graph, 1);
  CHECK(tensors.at(0).empty());
  CHECK(tensors.at(1).size() == 40);
}

TEST_CASE("the synthetic output follows from every byte of every input, their order, their places and the node") {
  const Bytes a = some_bytes(1001), b = some_bytes(64), reference = synthetic(3, {a, b}, 500);
  CHECK(synthetic(3, {a, b}, 500) == reference);
  CHECK(synthetic(4, {a, b}, 500) != reference);
  CHECK(synthetic(3, {b, a}, 500) != reference);
  for (std::size_t i = 0; i < a.size(); ++i) {
    Bytes changed = a;
    changed[i] ^= std::byte{1};
    REQUIRE(synthetic(3, {changed, b}, 500) != reference);
  }
  Bytes swapped = a;
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  CHECK(synthetic(3, {swapped, b}, 500) != reference);
}

TEST_CASE("a shorter synthetic output is the start of a longer one, and empty ones are fine") {
  const Bytes input = some_bytes(10), whole = synthetic(1, {input}, 100);
  for (const std::size_t size : {0, 1, 7, 8, 9, 99}) {
    CHECK(synthetic(1, {input}, size) == Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  CHECK(synthetic(1, {{}}, 8) != synthetic(1, {}, 8));
  CHECK(runtime::synthetic_digest({}) == 0);
}

TEST_CASE("a synthetic node may overwrite its input") {
  Bytes data = some_bytes(3000);
  const Bytes other = some_bytes(20), expected = synthetic(2, {data, other}, 3000);
  const std::vector<std::span<const std::byte>> inputs = {data, other};
  const std::span<std::byte> outputs[] = {data};
  runtime::run_synthetic(2, inputs, outputs);
  CHECK(data == expected);
}

TEST_CASE("every output of a synthetic node has bytes of its own, the first those of a node with one") {
  const Bytes input = some_bytes(100);
  Bytes first(40), second(40), third(16);
  const std::span<const std::byte> inputs[] = {input};
  const std::span<std::byte> outputs[] = {first, second, {}, third};
  runtime::run_synthetic(5, inputs, outputs);
  CHECK(first == synthetic(5, {input}, 40));
  CHECK(first != second);
  CHECK_FALSE(std::equal(third.begin(), third.end(), first.begin()));
  CHECK_FALSE(std::equal(third.begin(), third.end(), second.begin()));
}

}  // namespace cairn::tests::memory_test
