// Tests that a step allocates no memory while it runs. All allocations in this executable are counted, even in
// libraries.
#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/transfers.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::atomic<long> allocations{0};
}

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) noexcept {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}

namespace cairn::tests::allocation_test {
namespace {

long allocations_of_a_step(runtime::Program program, const runtime::ExecuteOptions& options = {}) {
  const auto executor = runtime::host_executor(std::move(program), options);
  const long before = allocations;
  executor->run();
  return allocations - before;
}

/// Returns a chain of convolutions. Each of them needs scratch for several tiles, and its products are computed in
/// blocks.
core::Graph convolutions() {
  core::GraphBuilder builder;
  const Shape image = {2, 40, 40, 32};
  const auto x = builder.add_resident({.name = "x", .shape = image, .role = Resident::Role::data});
  const auto w = builder.add_resident({.name = "w", .shape = {32, 3, 3, 32}});
  Operand last = Operand::resident(x);
  for (std::size_t i = 0; i < 3; ++i) {
    const Op conv = op_on(OpKind::conv2d, image, {last, Operand::resident(w)}, {.pad = 1});
    last = Operand::node(add_op(builder, std::string(i + 1, 'c'), conv));
  }
  return builder.build();
}

}  // namespace

TEST_CASE("the counter sees allocations") {
  const long before = allocations;
  void* volatile one = std::malloc(100);  // without volatile, Clang removes an allocation that nothing else reads
  std::free(one);
  CHECK(allocations == before + 1);
}

TEST_CASE("nothing is allocated while a step runs") {
  const Perceptron p = perceptron(100, 120, 200, 130);
  CHECK(allocations_of_a_step(compiled(p.graph, with_recomputation(p))) == 0);
  CHECK(allocations_of_a_step(compiled(p.graph, with_recomputation(p)), {.poison = true}) == 0);
  CHECK(allocations_of_a_step(compiled(p.graph, with_recomputation(p), 256, 64), {.sentinels = true}) == 0);
  const core::Graph convs = convolutions();
  CHECK(allocations_of_a_step(compiled(convs)) == 0);
  const core::Graph norms = pooled_norms(true);
  CHECK(allocations_of_a_step(compiled(norms)) == 0);

  Random random(3);
  for (const core::Graph& graph : updated_models()) {
    CHECK(allocations_of_a_step(compiled(graph)) == 0);
    CHECK(allocations_of_a_step(compiled(graph, recomputing_schedule(random, graph))) == 0);
  }
  for (int i = 0; i < 20; ++i) {
    const core::Graph graph = random_graph(random, {.min_nodes = 10, .max_nodes = 40, .several_outputs = i % 2 != 0});
    CHECK(allocations_of_a_step(compiled(graph, random_schedule(random, graph), 1)) == 0);
    const core::Schedule moved = with_transfers(random, graph, random_schedule(random, graph), 50);
    CHECK(allocations_of_a_step(compiled(graph, moved, 1), {.poison = true, .copy_delay_seed = 1}) == 0);
  }
}

}  // namespace cairn::tests::allocation_test

#endif
