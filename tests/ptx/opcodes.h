#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/ptx/code/integers.h"
#include "cairn/tests/ptx/kernel.h"

/// These functions compare an instruction with an expression in C++, on values at the limits of the types and on random
/// values.
namespace cairn::tests::ptx {

/// The three operands a, b and c of one thread.
struct Triple {
  U64 a, b, c;
};
using Triples = std::vector<Triple>;  ///< the operands of all threads

inline constexpr std::size_t kThreads = 64;  ///< number of threads of a block

/// Returns the operands of many threads: all pairs of values at the limits of integers, float and double, and random
/// values. The number of threads is a multiple of kThreads.
inline const Triples& edge_values() {
  static const Triples values = [] {
    const std::vector<U64> edges{
        // Integers at the limits of their types, and small ones.
        0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff,
        0x80000000, 0xffffffff, 0x100000000, 0x4000000000000000, 0x7fffffffffffffff, 0x8000000000000000,
        0xffffffffffffffff, 0x13f000000, 0x0123456789abcdef,
        // Floats: 1, -1, infinities, a quiet and a signalling NaN, the largest subnormal number, the smallest normal
        // number, the largest number, pi, halves, powers of two at the limits of integer types, and ties of the
        // rounding to bf16.
        0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0x7fffff, 0x800000, 0x807fffff,
        0x7f7fffff, 0x40490fdb, 0x3f000000, 0x3fc00000, 0xc0200000, 0x4f000000, 0x5f000000, 0xcf000000, 0x3f808000,
        0x3f818000, 0x3f808001, 0x7f7f8000, 0x18000,
        // Doubles: 1, -1, infinities, NaN, the smallest normal number, the largest number, halves, powers of two, and
        // ties of the rounding to float.
        0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
        0x10000000000000, 0x7fefffffffffffff, 0x3fe0000000000000, 0xc004000000000000, 0x41e0000000000000,
        0x43e0000000000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x47effffff0000000, 0x3690000000000000};
    std::mt19937_64 random(1);
    Triples all;
    for (const U64 a : edges) {
      for (const U64 b : edges) all.push_back({a, b, edges[random() % edges.size()]});
    }
    // In every second random triple, c is two small numbers, such as the position and the length of a bit field.
    for (int i = 0; i < 400 || all.size() % kThreads != 0; ++i)
      all.push_back({random(), random(), i % 2 == 0 ? random() : random() & 0x4f4f});
    return all;
  }();
  return values;
}

/// Appends the opcodes of a tested text to the file that the environment variable CAIRN_PTX_OPCODES names. The script
/// scripts/check_opcodes.py reads the file.
inline void note_opcodes(const std::string& text) {
  const char* const path = std::getenv("CAIRN_PTX_OPCODES");
  if (path == nullptr) return;
  std::ofstream file(path, std::ios::app);
  const Module module = parse(".entry test()\n{\n" + text + "\n}\n");
  for (const Statement& statement : module.functions.front().statements) file << statement.text() << '\n';
}

/// Returns the letter that names registers of type T, as in %w3. The letters f and d name the registers %w and %x if
/// these hold real numbers.
template <class T>
constexpr char letter() {
  if (std::is_same_v<T, bool>) return 'p';
  if (std::is_floating_point_v<T>) return sizeof(T) == 8 ? 'd' : 'f';
  return sizeof(T) == 8 ? 'x' : sizeof(T) == 2 ? 'h' : 'w';
}
inline std::string register_of(char letter, int number) {
  const char bank = letter == 'f' ? 'w' : letter == 'd' ? 'x' : letter;
  return std::string{'%', bank} + std::to_string(number);
}

/// Returns the value of type T whose bits are `bits`. Bits above the width of T are ignored. If T is bool, returns
/// whether `bits` is not 0.
template <class T>
T value_of(U64 bits) {
  if constexpr (std::is_same_v<T, bool>) return bits != 0;
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<U32>(bits));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return static_cast<T>(bits);
}
/// Returns the bits of a register that holds the value. An 8-bit number is held in a 32-bit register.
template <class T>
U64 bits_of_value(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<U32>(value);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<U64>(value);
  if constexpr (sizeof(T) == 2) return static_cast<U16>(value);
  if constexpr (std::is_integral_v<T> && sizeof(T) != 2)
    return sizeof(T) == 8 ? static_cast<U64>(value) : static_cast<U32>(value);
}

/// Runs the PTX text in one thread for each of `values`. In each thread, the registers %x0, %x1 and %x2 hold a, b and
/// c, %w0 to %w2 their lower 32 bits, and %h0 to %h2 their lower 16 bits. %p2 says whether c is not 0. Each thread has
/// 16 aligned bytes of memory: in global memory at %x16, in shared memory at %x17, and in local memory at %x18. Returns
/// each thread's result, which is in the register with the letter `result` and the number 3.
inline std::vector<U64> results(const Triples& values, const std::string& text, char result) {
  const std::string widen = result == 'w' || result == 'f' ? "cvt.u64.u32 %x3, %w3;"
                            : result == 'h'                ? "cvt.u64.u16 %x3, %h3;"
                            : result == 'p'                ? "selp.b64 %x3, 1, 0, %p3;"
                                                           : "";
  Kernel kernel(3,
                R"(
.local .align 16 .b8 own[16];
mov.u32 %w10, %ctaid.x;
mov.u32 %w11, %ntid.x;
mov.u32 %w12, %tid.x;
mad.lo.s32 %w13, %w10, %w11, %w12;
cvt.u64.u32 %x10, %w13;
ld.param.u64 %x12, [p0];
mul.lo.s64 %x13, %x10, 24;
add.s64 %x12, %x12, %x13;
ld.global.u64 %x0, [%x12];
ld.global.u64 %x1, [%x12+8];
ld.global.u64 %x2, [%x12+16];
cvt.u32.u64 %w0, %x0;
cvt.u32.u64 %w1, %x1;
cvt.u32.u64 %w2, %x2;
cvt.u16.u64 %h0, %x0;
cvt.u16.u64 %h1, %x1;
cvt.u16.u64 %h2, %x2;
setp.ne.u64 %p2, %x2, 0;
ld.param.u64 %x16, [p2];
mad.wide.u32 %x16, %w13, 16, %x16;
mov.u64 %x17, room;
mad.wide.u32 %x17, %w12, 16, %x17;
mov.u64 %x18, own;
)" + text + "\n" + widen +
                    R"(
ld.param.u64 %x14, [p1];
shl.b64 %x15, %x10, 3;
add.s64 %x14, %x14, %x15;
st.global.u64 [%x14], %x3;
)",
                ".shared .align 16 .b8 room[1024];\n");
  Memory memory;
  U64* const in = memory.numbers(3 * values.size());
  U64* const out = memory.numbers(values.size(), false);
  U64* const cells = memory.numbers(2 * values.size(), false);
  std::memcpy(in, values.data(), values.size() * sizeof(Triple));
  kernel.run(memory, {address(in), address(out), address(cells)}, {static_cast<U32>(values.size() / kThreads)},
             {kThreads});
  return {out, out + values.size()};
}

/// Runs the PTX text and checks that each thread i has the result expected(i). All bit patterns of NaN count as equal.
inline void check_threads(const Triples& values, const std::string& text, char result,
                          const std::function<U64(std::size_t i)>& expected) {
  const std::vector<U64> found = results(values, text, result);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const U64 wanted = expected(i);
    if (found[i] == wanted) continue;
    if (result == 'f' && std::isnan(value_of<float>(found[i])) && std::isnan(value_of<float>(wanted))) continue;
    if (result == 'd' && std::isnan(value_of<double>(found[i])) && std::isnan(value_of<double>(wanted))) continue;
    FAIL(text << " of " << std::hex << values[i].a << ", " << values[i].b << ", " << values[i].c << " is " << found[i]
              << ", expected " << wanted);
  }
  CHECK(!found.empty());
  note_opcodes(text);
}

template <class R, class... A>
void check_function(const Triples& values, const std::string& opcode, const std::function<R(A...)>& f) {
  std::string text = opcode;
  if (opcode.find(';') == std::string::npos) {
    int number = 0;
    text += " " + register_of(letter<R>(), 3);
    ((text += ", " + register_of(letter<A>(), number++)), ...);
    text += ";";
  }
  check_threads(values, text, letter<R>(), [&](std::size_t i) {
    const U64 of_thread[] = {values[i].a, values[i].b, values[i].c};
    std::tuple<A...> operands;
    std::apply([next = of_thread](A&... each) mutable { ((each = value_of<A>(*next++)), ...); }, operands);
    return bits_of_value<R>(std::apply(f, operands));
  });
}
/// Checks that an instruction has the same results as the function f. The types of f's parameters and result are those
/// of the instruction. If f has n parameters, the operands are the first n of a, b and c. `opcode` is an opcode
/// with its modifiers. It may also be a text with semicolons, which must put the result into the register with the
/// number 3.
template <class F>
void check(const std::string& opcode, const F& f, const Triples& values = edge_values()) {
  check_function(values, opcode, std::function(f));
}

}  // namespace cairn::tests::ptx
