// Compares the results of memory accesses, and of exchanges between the threads of a warp or a block, with C++ code.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/ptx/opcodes.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::ptx::access_test {
namespace {

/// A way to access the 16 bytes that each thread owns.
struct Way {
  std::string name, address;  ///< name: modifier of the accesses; address: register that holds the address
  std::string before;         ///< PTX text that computes the address, if it is not computed yet
};
const std::vector<Way> kWays{
    {".global", "%x16"},
    {".shared", "%x17"},
    {".shared", "%w8", "cvt.u32.u64 %w8, %x17;\n"},
    {".local", "%x18"},
    {"", "%x16"},
    {"", "%x20", "cvta.shared.u64 %x20, %x17;\n"},
    {"", "%x20", "cvta.local.u64 %x20, %x18;\n"},
    {".global", "%x20", "cvta.global.u64 %x19, %x16;\ncvta.to.global.u64 %x20, %x19;\n"},
    {".shared", "%x20", "cvta.shared.u64 %x19, %x17;\ncvta.to.shared.u64 %x20, %x19;\n"},
    {".local", "%x20", "cvta.local.u64 %x19, %x18;\ncvta.to.local.u64 %x20, %x19;\n"},
};

using Bytes = std::array<std::byte, 16>;
Bytes bytes_of(U64 low, U64 high) {
  Bytes bytes;
  std::memcpy(bytes.data(), &low, 8);
  std::memcpy(bytes.data() + 8, &high, 8);
  return bytes;
}
template <class T>
T element(const Bytes& bytes, std::size_t number) {
  T value;
  std::memcpy(&value, bytes.data() + number * sizeof(T), sizeof(T));
  return value;
}

/// Returns the part of an opcode that states the number of elements, with dots around it: ".v4." for 4, and "." for 1.
std::string vector_of(std::size_t count) { return count == 1 ? "." : ".v" + std::to_string(count) + "."; }

/// Returns the registers as one operand, such as "{%w4, %w5}". For a single register, the operand has no braces.
std::string listed(const std::vector<std::string>& registers) {
  std::string text;
  for (const std::string& name : registers) text += (text.empty() ? "" : ", ") + name;
  return registers.size() == 1 ? text : "{" + text + "}";
}

/// Returns random values for 128 threads, which are a part of edge_values().
const Triples& some_values() {
  static const Triples values(edge_values().end() - 128, edge_values().end());
  return values;
}

/// Returns all pairs of numbers from a list around the limits of the integer types, and some random values.
const Triples& some_pairs() {
  static const Triples values = [] {
    const U64 edges[] = {
        0, 1, 2, 7, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000, 0x7fffffffffffffff, 0x8000000000000000, ~U64{0}};
    Triples pairs = some_values();
    for (const U64 a : edges) {
      for (const U64 b : edges) pairs.push_back({a, b, a ^ 5});
    }
    while (pairs.size() % kThreads != 0) pairs.push_back(pairs[pairs.size() - 150]);
    return pairs;
  }();
  return values;
}

/// Checks loads and stores of `count` elements of type T by one way of addressing. `load` and `store` are the parts of
/// the opcodes before the modifier of the way, such as "ld.volatile".
template <class T>
void check_access(const Way& way, const std::string& load, const std::string& store, const std::string& type,
                  std::size_t count) {
  const auto cell = [&](std::size_t byte) { return "[" + way.address + "+" + std::to_string(byte) + "]"; };
  const std::string words = way.name + ".u64 ", elements = way.name + vector_of(count) + type + " ";
  const std::string fill = way.before + "st" + words + cell(0) + ", %x0;\nst" + words + cell(8) + ", %x1;\n";
  const auto loads = [&]<class R>(R) {
    const std::string move = "mov.b" + std::to_string(8 * sizeof(R)) + " " + register_of(letter<R>(), 3) + ", ";
    std::vector<std::string> into;
    for (std::size_t k = 0; k < count; ++k) into.push_back(register_of(letter<R>(), 4 + static_cast<int>(k)));
    for (std::size_t k = 0; k < count; ++k) {
      check(
          fill + load + elements + listed(into) + ", " + cell(0) + ";\n" + move + into[k] + ";",
          [k](U64 a, U64 b) { return static_cast<R>(element<T>(bytes_of(a, b), k)); }, some_values());
    }
  };
  using Narrow = std::conditional_t<sizeof(T) == 1, U16, T>;
  loads(Narrow{});
  if (type.front() != 'f' && sizeof(T) < 8)
    // A register can be wider than the element, which is then extended.
    loads(U64{});
  std::vector<std::string> values;
  for (std::size_t k = 0; k < count; ++k) values.push_back(register_of(letter<Narrow>(), static_cast<int>(k % 3)));
  for (const std::size_t half : {0, 1}) {
    check(
        fill + store + elements + cell(0) + ", " + listed(values) + ";\nld" + words + "%x3, " + cell(8 * half) + ";",
        [=](U64 a, U64 b, U64 c) {
          Bytes bytes = bytes_of(a, b);
          const U64 stored[] = {a, b, c, a};
          for (std::size_t k = 0; k < count; ++k) std::memcpy(bytes.data() + k * sizeof(T), &stored[k], sizeof(T));
          return element<U64>(bytes, half);
        },
        some_values());
  }
}

template <class Body>
void each_type(const Body& body) {
  body(U8{}, "u8");
  body(S8{}, "s8");
  body(U8{}, "b8");
  body(U16{}, "u16");
  body(S16{}, "s16");
  body(U16{}, "b16");
  body(U32{}, "u32");
  body(S32{}, "s32");
  body(U32{}, "b32");
  body(U32{}, "f32");
  body(U64{}, "u64");
  body(S64{}, "s64");
  body(U64{}, "b64");
  body(U64{}, "f64");
}

/// Checks the result of an atomic operation and the memory after it, in each memory space. The operands of a thread are
/// the values b and c of its Triple.
template <class T, class F>
void check_atomic(const std::string& operation, const std::string& type, const F& f) {
  const auto own = [](int number) { return register_of(letter<T>(), number); };
  const std::string bits = ".b" + std::to_string(8 * sizeof(T)) + " ";
  const std::string operands = ", " + own(1) + (operation == "cas" ? ", " + own(2) : "") + ";";
  for (const Way& way : kWays) {
    if (contains(way.name + way.before, "local")) continue;
    const std::string cell = "[" + way.address + "]", opcode = way.name + "." + operation + "." + type + " ";
    const std::string fill = way.before + "st" + way.name + bits + cell + ", " + own(0) + ";\n";
    const std::string read = "\nld" + way.name + bits + own(3) + ", " + cell + ";";
    const auto returned = [](T a, T, T) { return a; };
    const auto left = [f](T a, T b, T c) { return f(a, b, c); };
    for (const std::string scope : {"", ".relaxed.gpu", ".acq_rel.cta"}) {
      check(fill + "atom" + scope + opcode + own(3) + ", " + cell + operands, returned, some_pairs());
      check(fill + "atom" + scope + opcode + own(4) + ", " + cell + operands + read, left, some_pairs());
    }
    if (operation == "cas" || operation == "exch") continue;
    check(fill + "red" + opcode + cell + operands + read, left, some_pairs());
  }
}

/// Returns values for blocks of two warps. In a warp, the predicates (c is not 0) are all false, all true, true in one
/// lane, or random. All pairs of these four kinds occur.
Triples votes() {
  Triples values;
  for (int block = 0; block < 16; ++block) {
    for (std::size_t i = 0; i < kThreads; ++i) {
      const Triple& random = edge_values()[edge_values().size() - 1 - values.size() % 300];
      const int kind = i < kLanes ? block % 4 : block / 4;
      const bool predicate = kind == 1 || (kind == 2 && i % kLanes == 7) || (kind == 3 && random.a % 3 == 0);
      values.push_back({random.a, random.b, U64{predicate}});
    }
  }
  return values;
}

}  // namespace

TEST_CASE("PTX: loads and stores", "[opcodes]") {
  const std::pair<std::string, std::string> opcodes[] = {{"ld", "st"},
                                                         {"ld.volatile", "st.volatile"},
                                                         {"ld.relaxed.gpu", "st.relaxed.gpu"},
                                                         {"ld.acquire.cta", "st.release.cta"}};
  for (const Way& way : kWays) {
    for (const auto& [load, store] : opcodes) {
      each_type([&, load = load, store = store](auto zero, const std::string& type) {
        for (const std::size_t count : {1, 2, 4}) {
          if (count * sizeof(zero) <= 16) check_access<decltype(zero)>(way, load, store, type, count);
        }
      });
    }
  }
}

TEST_CASE("PTX: loads of parameters", "[opcodes]") {
  // The two parameters p1 and p2 together form 16 bytes of memory.
  Memory memory;
  const U64 low = 0xfedcba9876543280, high = 0x8091a2b3c4d5e6f7;
  each_type([&](auto zero, const std::string& type) {
    using T = decltype(zero);
    for (const std::size_t count : {1, 2, 4}) {
      if (count * sizeof(T) > 16) continue;
      std::vector<std::string> into;
      for (std::size_t k = 0; k < count; ++k) into.push_back("%x" + std::to_string(k));
      const std::string load = "ld.param" + vector_of(count) + type + " " + listed(into) + ", [p1];\n";
      std::string text = load + "ld.param.u64 %x8, [p0];\n";
      for (std::size_t k = 0; k < count; ++k)
        text += "st.global.u64 [%x8+" + std::to_string(8 * k) + "], " + into[k] + ";\n";
      Kernel kernel(3, text);
      U64* const out = memory.numbers(4, false);
      kernel.run(memory, {address(out), low, high}, {1}, {1});
      for (std::size_t k = 0; k < count; ++k) {
        INFO(load << " element " << k);
        CHECK(out[k] == static_cast<U64>(element<T>(bytes_of(low, high), k)));
      }
      note_opcodes(load);
    }
  });
}

TEST_CASE("PTX: atomics", "[opcodes]") {
  const auto of_type = [](auto zero, const std::string& suffix) {
    using U = decltype(zero);
    using S = std::make_signed_t<U>;
    check_atomic<U>("add", "u" + suffix, [](U a, U b, U) { return a + b; });
    check_atomic<U>("and", "b" + suffix, [](U a, U b, U) { return a & b; });
    check_atomic<U>("or", "b" + suffix, [](U a, U b, U) { return a | b; });
    check_atomic<U>("xor", "b" + suffix, [](U a, U b, U) { return a ^ b; });
    check_atomic<U>("exch", "b" + suffix, [](U, U b, U) { return b; });
    check_atomic<U>("cas", "b" + suffix, [](U a, U b, U c) { return a == b ? c : a; });
    check_atomic<U>("min", "u" + suffix, [](U a, U b, U) { return std::min(a, b); });
    check_atomic<U>("max", "u" + suffix, [](U a, U b, U) { return std::max(a, b); });
    check_atomic<S>("min", "s" + suffix, [](S a, S b, S) { return std::min(a, b); });
    check_atomic<S>("max", "s" + suffix, [](S a, S b, S) { return std::max(a, b); });
  };
  of_type(U32{}, "32");
  of_type(U64{}, "64");
  check_atomic<U32>("add", "s32", [](U32 a, U32 b, U32) { return a + b; });
  // The operation inc counts from 0 to b and starts again at 0. The operation dec counts down from b in the same way.
  check_atomic<U32>("inc", "u32", [](U32 a, U32 b, U32) { return a < b ? a + 1 : 0; });
  check_atomic<U32>("dec", "u32", [](U32 a, U32 b, U32) { return a > 0 && a <= b ? a - 1 : b; });
  check_atomic<float>("add", "f32", [](float a, float b, float) { return a + b; });
  check_atomic<double>("add", "f64", [](double a, double b, double) { return a + b; });
}

TEST_CASE("PTX: shuffles", "[opcodes]") {
  const Triples& values = some_values();
  for (const std::string kind : {"up", "down", "bfly", "idx"}) {
    for (const int width : {1, 2, 4, 8, 16, 32}) {
      // Returns the lane whose value lane `own` reads, or -1 if that lane is outside of the segment of lane `own`.
      const auto source = [=](int own, int by) {
        const int begin = own / width * width, end = begin + width;
        if (kind == "up") return own - by >= begin ? own - by : -1;
        if (kind == "down") return own + by < end ? own + by : -1;
        if (kind == "bfly") return (own ^ by) < end ? own ^ by : -1;
        return begin + by % width;
      };
      const int segment = (32 - width) << 8 | (kind == "up" ? 0 : 31);
      const std::string text = "shfl.sync." + kind + ".b32 %w3|%p3, %w0, %w1, " + std::to_string(segment) + ", -1;";
      check_threads(values, text, 'w', [&](std::size_t i) {
        const int own = static_cast<int>(i % kLanes), from = source(own, static_cast<int>(values[i].b % kLanes));
        return values[i - own + (from < 0 ? own : from)].a & 0xffffffff;
      });
      check_threads(values, text, 'p', [&](std::size_t i) {
        return U64{source(static_cast<int>(i % kLanes), static_cast<int>(values[i].b % kLanes)) >= 0};
      });
    }
  }
}

TEST_CASE("PTX: votes", "[opcodes]") {
  const Triples values = votes();
  const auto of_block = [&](std::size_t i) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i / kThreads * kThreads);
    return static_cast<U64>(std::count_if(first, first + kThreads, [](Triple v) { return v.c != 0; }));
  };
  const auto ballot = [&](std::size_t i, const auto& chosen) {
    U64 lanes = 0;
    for (std::size_t k = 0; k < kLanes; ++k) lanes |= U64{chosen(values[i / kLanes * kLanes + k])} << k;
    return lanes;
  };
  const auto of_votes = [&](std::size_t i) { return ballot(i, [](Triple v) { return v.c != 0; }); };
  // With this text before it, a vote is executed only by the lanes whose number a is odd.
  const std::string odd =
      "and.b32 %w4, %w0, 1;\nsetp.ne.u32 %p4, %w4, 0;\nvote.sync.ballot.b32 %w5, %p4, -1;\nmov.u32 %w3, 0;\n"
      "mov.pred %p3, 0;\n@%p4 ";
  const auto odd_lanes = [&](std::size_t i) { return ballot(i, [](Triple v) { return v.a % 2 != 0; }); };
  const auto is_odd = [&](std::size_t i) { return values[i].a % 2 != 0; };
  // The instruction's modifiers can be written in two orders.
  for (const std::string opcode : {"vote.sync.ballot.b32", "vote.ballot.sync.b32"}) {
    check_threads(values, opcode + " %w3, %p2, -1;", 'w', of_votes);
    check_threads(values, opcode + " %w3, !%p2, -1;", 'w', [&](std::size_t i) { return 0xffffffff ^ of_votes(i); });
    check_threads(values, odd + opcode + " %w3, %p2, %w5;", 'w',
                  [&](std::size_t i) { return is_odd(i) ? of_votes(i) & odd_lanes(i) : 0; });
  }
  for (const std::string kind : {"sync.any", "sync.all", "sync.uni", "any.sync", "all.sync", "uni.sync"}) {
    const auto outcome = [&](U64 lanes, U64 given) {
      return contains(kind, "any") ? given != 0 : given == lanes || (contains(kind, "uni") && given == 0);
    };
    const std::string opcode = "vote." + kind + ".pred %p3, %p2, ";
    check_threads(values, opcode + "-1;", 'p', [&](std::size_t i) { return U64{outcome(0xffffffff, of_votes(i))}; });
    check_threads(values, odd + opcode + "%w5;", 'p',
                  [&](std::size_t i) { return U64{is_odd(i) && outcome(odd_lanes(i), of_votes(i) & odd_lanes(i))}; });
  }
  check_threads(values, "mov.u32 %w3, 0;\n@%p2 activemask.b32 %w3;", 'w',
                [&](std::size_t i) { return values[i].c == 0 ? 0 : of_votes(i); });
  check_threads(values, "bar.red.or.pred %p3, 0, %p2;", 'p', [&](std::size_t i) { return U64{of_block(i) > 0}; });
  check_threads(values, "bar.red.and.pred %p3, 0, %p2;", 'p',
                [&](std::size_t i) { return U64{of_block(i) == kThreads}; });
  check_threads(values, "bar.red.popc.u32 %w3, 0, %p2;", 'w', [&](std::size_t i) { return of_block(i); });
}

}  // namespace cairn::tests::ptx::access_test
