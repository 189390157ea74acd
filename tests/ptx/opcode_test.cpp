// Tests the opcodes that compute a result from their operands. Compares each result with that of an expression in C++.
#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "cairn/tests/catch.h"
#include "cairn/tests/ptx/opcodes.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::ptx::opcode_test {
namespace {

/// Calls body(T{}, name) for each integer type T of at least 16 bits. `name` is its name in PTX.
template <class Body>
void each_whole(const Body& body) {
  body(U16{}, "u16");
  body(S16{}, "s16");
  body(U32{}, "u32");
  body(S32{}, "s32");
  body(U64{}, "u64");
  body(S64{}, "s64");
}
template <class Body>
void each_narrow_or_whole(const Body& body) {
  body(U8{}, "u8");
  body(S8{}, "s8");
  each_whole(body);
}
template <class Body>
void each_bits(const Body& body) {
  body(U16{}, "b16");
  body(U32{}, "b32");
  body(U64{}, "b64");
}
template <class Body>
void each_real(const Body& body) {
  body(float{}, "f32");
  body(double{}, "f64");
}

/// The 128-bit type that is signed if T is signed. Sums and products of T are exact in it.
template <class T>
using Exact = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
/// The type that is signed if T is signed, and twice as wide as T.
template <class T>
using Twice = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, S32, U32>,
                                 std::conditional_t<std::is_signed_v<T>, S64, U64>>;
template <class T>
constexpr int kBits = 8 * sizeof(T);

/// Returns x, but replaces a subnormal number by a zero with the same sign.
float near(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

/// A way of rounding, by the name of its modifier of cvt and by its number in <cfenv>.
struct Way {
  std::string name;
  int mode;
};
const std::array<Way, 4> kWays{{{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}}};

/// Calls f() while the processor rounds in the given way. Returns the result of f().
template <class F>
auto rounding(int mode, const F& f) {
  std::fesetround(mode);
  const volatile auto result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}
template <class R, class A>
R cast(int mode, A value) {
  const volatile A operand = value;
  // Clang converts 64-bit numbers without sign by a subtraction, whose result for 0 is -0 if it is rounded down.
  if (operand == 0) return static_cast<R>(value);
  return rounding(mode, [&] { return static_cast<R>(operand); });
}
template <class A>
A whole(int mode, A value) {
  const volatile A operand = value;
  return rounding(mode, [&] { return static_cast<A>(std::nearbyint(operand)); });
}

/// Returns the number of type R that is nearest to `value`, which is a whole number. For NaN, returns 0, or a number of
/// which only the highest bit is set if one of the two types has 64 bits.
template <class R, class A>
R clamped(A value) {
  if (std::isnan(value)) return kBits<A> == 64 || kBits<R> == 64 ? static_cast<R>(U64{1} << (kBits<R> - 1)) : R{0};
  constexpr A kMost = 1e30F;
  const auto exact = static_cast<__int128>(std::clamp(value, -kMost, kMost));
  return static_cast<R>(std::clamp<__int128>(exact, std::numeric_limits<R>::min(), std::numeric_limits<R>::max()));
}

/// Returns the bf16 that is nearest to the value. If two are equally near, returns the one whose last bit is 0.
U16 nearest_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  // Infinity counts as 2^128 here, which is the number that would follow the largest finite bf16.
  const auto number = [](U16 bits) {
    const double size = (bits & 0x7fff) == 0x7f80 ? std::ldexp(1.0, 128) : value_of<float>(U64{bits & 0x7fffU} << 16);
    return bits >= 0x8000 ? -size : size;
  };
  const auto low = static_cast<U16>(std::bit_cast<U32>(value) >> 16), high = static_cast<U16>(low + 1);
  if (std::isinf(value)) return low;
  const double below = std::fabs(value - number(low)), above = std::fabs(number(high) - value);
  return below < above || (below == above && low % 2 == 0) ? low : high;
}

/// Returns whether the bit at `place` is 1. Bit 0 is the lowest bit.
bool bit(U64 number, int place) { return (number >> place & 1) != 0; }

/// Checks the opcodes that exist for all integer types.
template <class T>
void check_whole(const std::string& type) {
  using E = Exact<T>;
  check("add." + type, [](T a, T b) { return static_cast<T>(U64(a) + U64(b)); });
  check("sub." + type, [](T a, T b) { return static_cast<T>(U64(a) - U64(b)); });
  check("mul.lo." + type, [](T a, T b) { return static_cast<T>(U64(a) * U64(b)); });
  check("mul.hi." + type, [](T a, T b) { return static_cast<T>(E{a} * b >> kBits<T>); });
  check("mad.lo." + type, [](T a, T b, T c) { return static_cast<T>(U64(a) * U64(b) + U64(c)); });
  check("mad.hi." + type,
        [](T a, T b, T c) { return static_cast<T>(static_cast<U64>(E{a} * b >> kBits<T>) + U64(c)); });
  check("div." + type, [](T a, T b) { return static_cast<T>(b == 0 ? E{0} - 1 : E{a} / b); });
  check("rem." + type, [](T a, T b) { return static_cast<T>(b == 0 ? E{a} : E{a} % b); });
  check("min." + type, [](T a, T b) { return std::min(a, b); });
  check("max." + type, [](T a, T b) { return std::max(a, b); });
  check("setp.eq." + type, [](T a, T b) { return a == b; });
  check("setp.ne." + type, [](T a, T b) { return a != b; });
  check("setp.lt." + type, [](T a, T b) { return a < b; });
  check("setp.le." + type, [](T a, T b) { return a <= b; });
  check("setp.gt." + type, [](T a, T b) { return a > b; });
  check("setp.ge." + type, [](T a, T b) { return a >= b; });
  check("shr." + type, [](T a, U32 by) { return static_cast<T>(E{a} >> std::min<U32>(by, 64)); });
  if constexpr (sizeof(T) < 8) {
    check("mul.wide." + type, [](T a, T b) { return static_cast<Twice<T>>(E{a} * b); });
    check("mad.wide." + type,
          [](T a, T b, Twice<T> c) { return static_cast<Twice<T>>(static_cast<U64>(E{a} * b) + U64(c)); });
  }
  if constexpr (std::is_signed_v<T>) {
    check("abs." + type, [](T a) { return static_cast<T>(a < 0 ? -E{a} : E{a}); });
    check("neg." + type, [](T a) { return static_cast<T>(-E{a}); });
  } else {
    check("setp.lo." + type, [](T a, T b) { return a < b; });
    check("setp.ls." + type, [](T a, T b) { return a <= b; });
    check("setp.hi." + type, [](T a, T b) { return a > b; });
    check("setp.hs." + type, [](T a, T b) { return a >= b; });
  }
}

/// Checks the opcodes that find, extract or insert bits, for types with 32 or 64 bits.
template <class T>
void check_fields(const std::string& type) {
  const auto find = [](T a) {  // finds the highest bit that differs from the sign bit
    int place = kBits<T> - 1;
    while (place >= 0 && bit(a, place) == (a < 0)) --place;
    return place;
  };
  check("bfind." + type, [=](T a) { return static_cast<U32>(find(a)); });
  check("bfind.shiftamt." + type, [=](T a) { return static_cast<U32>(find(a) < 0 ? -1 : kBits<T> - 1 - find(a)); });
  const std::string place = "and.b32 %w4, %w2, 255;\nshr.u32 %w5, %w2, 8;\n", x{letter<T>()};
  check(place + "bfe." + type + " %" + x + "3, %" + x + "0, %w4, %w5;", [](T a, U64, U32 c) {
    const U32 from = c & 255, width = c >> 8 & 255;
    if (width == 0) return T{0};
    const auto above = static_cast<T>(Exact<T>{a} >> std::min<U32>(from, 64));
    const U32 rest = width < kBits<T> ? kBits<T> - width : 0;
    return static_cast<T>(static_cast<T>(static_cast<U64>(above) << rest) >> rest);
  });
}

}  // namespace

TEST_CASE("PTX: whole numbers", "[opcodes]") {
  each_whole([](auto zero, const std::string& type) { check_whole<decltype(zero)>(type); });
  const auto of_halves = [](auto f) {
    return [f](U32 a, U32 b) {
      return U32{f(static_cast<U16>(a >> 16), static_cast<U16>(b >> 16))} << 16 |
             f(static_cast<U16>(a), static_cast<U16>(b));
    };
  };
  check("min.u16x2", of_halves([](U16 a, U16 b) { return std::min(a, b); }));
  check("max.u16x2", of_halves([](U16 a, U16 b) { return std::max(a, b); }));
  check("add.s32 %w3, %w0, -7;", [](U32 a) { return a - 7; });
  // These chains of instructions add numbers that consist of two or three words.
  for (const std::string type : {"u32", "s32", "u64", "s64"}) {
    const std::string x = type.ends_with("64") ? "%x" : "%w";
    const std::string first = "add.cc." + type + " " + x + "4, " + x + "0, " + x + "1;\n";
    const std::string second = "addc.cc." + type + " " + x + "3, " + x + "2, " + x + "0;\n";
    const std::string last = "addc." + type + " " + x + "3, " + x + "1, " + x + "2;\n";
    const auto sums = [&](auto zero) {
      using T = decltype(zero);
      const auto carry = [](T a, T b, U64 in) {
        return static_cast<U64>((static_cast<unsigned __int128>(a) + b + in) >> kBits<T>);
      };
      check(first + second, [=](T a, T b, T c) { return static_cast<T>(c + a + carry(a, b, 0)); });
      check(first + last, [=](T a, T b, T c) { return static_cast<T>(b + c + carry(a, b, 0)); });
      check(first + second + last, [=](T a, T b, T c) { return static_cast<T>(b + c + carry(c, a, carry(a, b, 0))); });
    };
    type.ends_with("64") ? sums(U64{}) : sums(U32{});
  }
}

TEST_CASE("PTX: bits", "[opcodes]") {
  each_bits([](auto zero, const std::string& type) {
    using T = decltype(zero);
    check("and." + type, [](T a, T b) { return static_cast<T>(a & b); });
    check("or." + type, [](T a, T b) { return static_cast<T>(a | b); });
    check("xor." + type, [](T a, T b) { return static_cast<T>(a ^ b); });
    check("not." + type, [](T a) { return static_cast<T>(-1 - Exact<S64>{a}); });
    check("shl." + type, [](T a, U32 by) { return static_cast<T>(by >= kBits<T> ? 0 : U64{a} << by); });
    check("shr." + type, [](T a, U32 by) { return static_cast<T>(by >= kBits<T> ? 0 : U64{a} >> by); });
    check("setp.eq." + type, [](T a, T b) { return a == b; });
    check("setp.ne." + type, [](T a, T b) { return a != b; });
    if constexpr (sizeof(T) >= 4) {
      check("popc." + type, [](T a) { return static_cast<U32>(std::popcount(a)); });
      check("clz." + type, [](T a) { return static_cast<U32>(std::countl_zero(a)); });
      check("brev." + type, [](T a) {
        T reversed = 0;
        for (int i = 0; i < kBits<T>; ++i) reversed |= static_cast<T>(T{bit(a, i)} << (kBits<T> - 1 - i));
        return reversed;
      });
      const std::string x{letter<T>()};
      check("shr.u32 %w5, %w2, 8;\nbfi." + type + " %" + x + "3, %" + x + "0, %" + x + "1, %w2, %w5;",
            [](T a, T b, U32 c) {
              const U32 from = c & 255, width = c >> 8 & 255;
              if (from >= kBits<T>) return b;
              const T ones = width >= kBits<T> ? static_cast<T>(-1) : static_cast<T>((T{1} << width) - 1);
              return static_cast<T>((b & ~(ones << from)) | (a & ones) << from);
            });
    }
  });
  check_fields<U32>("u32");
  check_fields<S32>("s32");
  check_fields<U64>("u64");
  check_fields<S64>("s64");
  check("bmsk.clamp.b32", [](U32 a, U32 b) {
    U64 mask = 0;
    for (U64 i = a; i < 32 && i < U64{a} + b; ++i) mask |= U64{1} << i;
    return static_cast<U32>(mask);
  });
  check("prmt.b32 %w3, %w0, %w1, 0x5410;", [](U32 a, U32 b) { return b << 16 | (a & 0xffff); });
  check("prmt.b32", [](U32 a, U32 b, U32 c) {
    const auto byte = [&](U32 choice) {
      const U32 chosen = (choice & 4) != 0 ? b : a, found = chosen >> 8 * (choice & 3) & 255;
      return (choice & 8) == 0 ? found : found < 128 ? 0U : 255U;
    };
    return byte(c >> 12 & 15) << 24 | byte(c >> 8 & 15) << 16 | byte(c >> 4 & 15) << 8 | byte(c & 15);
  });
  const auto both = [](U32 low, U32 high) { return U64{high} << 32 | low; };
  check("shf.l.wrap.b32", [=](U32 a, U32 b, U32 c) { return static_cast<U32>(both(a, b) << c % 32 >> 32); });
  check("shf.r.wrap.b32", [=](U32 a, U32 b, U32 c) { return static_cast<U32>(both(a, b) >> c % 32); });
  check("shf.l.clamp.b32", [=](U32 a, U32 b, U32 c) { return c >= 32 ? a : static_cast<U32>(both(a, b) << c >> 32); });
  check("shf.r.clamp.b32", [=](U32 a, U32 b, U32 c) { return c >= 32 ? b : static_cast<U32>(both(a, b) >> c); });
  for (const U32 table : {0U, 0x80U, 0xfeU, 0x96U, 0xd8U, 0xe8U, 0x1bU, 0xffU}) {
    check("lop3.b32 %w3, %w0, %w1, %w2, " + std::to_string(table) + ";", [table](U32 a, U32 b, U32 c) {
      U32 value = 0;
      for (int i = 0; i < 32; ++i) value |= U32{bit(table, bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i))} << i;
      return value;
    });
  }
}

TEST_CASE("PTX: copies and choices", "[opcodes]") {
  const auto copies = [](auto zero, const std::string& type) {
    using T = decltype(zero);
    check("mov." + type, [](T a) { return a; });
    check("selp." + type, [](T a, T b, bool c) { return c ? a : b; });
  };
  each_bits(copies);
  each_whole(copies);
  copies(U32{}, "f32");
  copies(U64{}, "f64");
  check("mov.pred %p3, -1;\n@%p2 mov.pred %p3, 0;", [](U64, U64, bool c) { return !c; });
  check("mov.pred %p3, !%p2;", [](U64, U64, bool c) { return !c; });
  check("mov.b64 {%w4, %w5}, %x0;\nmov.b64 %x3, {%w5, %w4};", [](U64 a) { return a << 32 | a >> 32; });
  check("mov.b32 {%h4, %h5}, %w0;\nmov.b32 %w3, {%h5, %h4};", [](U32 a) { return a << 16 | a >> 16; });
  check("mov.b64 {_, %w3}, %x0;", [](U64 a) { return static_cast<U32>(a >> 32); });
  const std::string less = "setp.lt.u64 %p4, %x0, %x1;\n";
  check(less + "and.pred %p3, %p4, %p2;", [](U64 a, U64 b, bool c) { return a < b && c; });
  check(less + "or.pred %p3, %p4, %p2;", [](U64 a, U64 b, bool c) { return a < b || c; });
  check(less + "xor.pred %p3, %p4, %p2;", [](U64 a, U64 b, bool c) { return (a < b) != c; });
  check(less + "and.pred %p3, !%p4, %p2;", [](U64 a, U64 b, bool c) { return a >= b && c; });
  check(less + "or.pred %p3, %p4, !%p2;", [](U64 a, U64 b, bool c) { return a < b || !c; });
  check("not.pred %p3, %p2;", [](U64, U64, bool c) { return !c; });
  check("setp.lt.and.s32 %p3, %w0, %w1, %p2;", [](S32 a, S32 b, bool c) { return a < b && c; });
  check("setp.lt.or.s32 %p3, %w0, %w1, !%p2;", [](S32 a, S32 b, bool c) { return a < b || !c; });
  check("setp.lt.xor.u64 %p3, %x0, %x1, %p2;", [](U64 a, U64 b, bool c) { return (a < b) != c; });
  check("setp.eq.s32 %p4|%p3, %w0, %w1;", [](U32 a, U32 b) { return a != b; });
  check("setp.eq.and.s32 %p4|%p3, %w0, %w1, %p2;", [](U32 a, U32 b, bool c) { return a != b && c; });
}

TEST_CASE("PTX: comparisons of real numbers", "[opcodes]") {
  each_real([](auto zero, const std::string& type) {
    using T = decltype(zero);
    check("setp.eq." + type, [](T a, T b) { return a == b; });
    check("setp.ne." + type, [](T a, T b) { return a < b || a > b; });
    check("setp.lt." + type, [](T a, T b) { return a < b; });
    check("setp.le." + type, [](T a, T b) { return a <= b; });
    check("setp.gt." + type, [](T a, T b) { return a > b; });
    check("setp.ge." + type, [](T a, T b) { return a >= b; });
    check("setp.equ." + type, [](T a, T b) { return !(a < b || a > b); });
    check("setp.neu." + type, [](T a, T b) { return !(a == b); });
    check("setp.ltu." + type, [](T a, T b) { return !(a >= b); });
    check("setp.leu." + type, [](T a, T b) { return !(a > b); });
    check("setp.gtu." + type, [](T a, T b) { return !(a <= b); });
    check("setp.geu." + type, [](T a, T b) { return !(a < b); });
    check("setp.num." + type, [](T a, T b) { return a == a && b == b; });
    check("setp.nan." + type, [](T a, T b) { return a != a || b != b; });
  });
}

TEST_CASE("PTX: arithmetic on real numbers", "[opcodes]") {
  const auto one = [](const std::string& opcode, auto f) {
    check(opcode + ".f32", [f](float a) { return f(a); });
    check(opcode + ".ftz.f32", [f](float a) { return near(f(near(a))); });
    check(opcode + ".f64", [f](double a) { return f(a); });
  };
  const auto two = [](const std::string& opcode, auto f) {
    check(opcode + ".f32", [f](float a, float b) { return f(a, b); });
    check(opcode + ".ftz.f32", [f](float a, float b) { return near(f(near(a), near(b))); });
    check(opcode + ".f64", [f](double a, double b) { return f(a, b); });
  };
  for (const std::string nearest : {"", ".rn"}) {
    two("add" + nearest, [](auto a, auto b) { return a + b; });
    two("sub" + nearest, [](auto a, auto b) { return a - b; });
    two("mul" + nearest, [](auto a, auto b) { return a * b; });
  }
  two("div.rn", [](auto a, auto b) { return a / b; });
  // min and max treat -0 as less than 0. If one operand is NaN, they return the other operand.
  two("min", [](auto a, auto b) { return std::isnan(a) || b < a || (a == b && std::signbit(b)) ? b : a; });
  two("max", [](auto a, auto b) { return std::isnan(a) || b > a || (a == b && std::signbit(a)) ? b : a; });
  one("abs", [](auto a) { return std::signbit(a) ? -a : a; });
  one("neg", [](auto a) { return -a; });
  one("sqrt.rn", [](auto a) { return std::sqrt(a); });
  one("rcp.rn", [](auto a) { return 1 / a; });
  check("mul.f32 %w3, %w0, 0fBF000000;", [](float a) { return a * -0.5F; });
  check("copysign.f32", [](float a, float b) { return std::copysign(b, a); });
  check("copysign.f64", [](double a, double b) { return std::copysign(b, a); });
  check("fma.rn.f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  check("fma.rn.ftz.f32", [](float a, float b, float c) { return near(std::fma(near(a), near(b), near(c))); });
  check("fma.rn.f64", [](double a, double b, double c) { return std::fma(a, b, c); });
  // PTX permits errors of a few units in the last place. The interpreter returns the exact value, rounded.
  using Exactly = long double (*)(long double);
  const std::pair<std::string, Exactly> approximations[] = {
      {"ex2", [](long double a) { return std::exp2(a); }},  {"lg2", [](long double a) { return std::log2(a); }},
      {"sin", [](long double a) { return std::sin(a); }},   {"cos", [](long double a) { return std::cos(a); }},
      {"tanh", [](long double a) { return std::tanh(a); }}, {"sqrt", [](long double a) { return std::sqrt(a); }},
      {"rcp", [](long double a) { return 1 / a; }},         {"rsqrt", [](long double a) { return 1 / std::sqrt(a); }}};
  for (const auto& [opcode, exact] : approximations) {
    check(opcode + ".approx.f32", [f = exact](float a) { return static_cast<float>(f(a)); });
    if (opcode == "tanh") continue;
    check(opcode + ".approx.ftz.f32", [f = exact](float a) { return near(static_cast<float>(f(near(a)))); });
  }
}

TEST_CASE("PTX: conversions between whole numbers", "[opcodes]") {
  each_narrow_or_whole([](auto to, const std::string& to_type) {
    each_narrow_or_whole([&](auto from, const std::string& from_type) {
      using R = decltype(to);
      using A = decltype(from);
      check("cvt." + to_type + "." + from_type, [](A a) { return static_cast<R>(a); });
      check("cvt.sat." + to_type + "." + from_type, [](A a) {
        return static_cast<R>(std::clamp<__int128>(a, std::numeric_limits<R>::min(), std::numeric_limits<R>::max()));
      });
    });
  });
  check("cvt.s64.s32 %x3, %x0;", [](S32 a) { return S64{a}; });
  check("cvt.u32.u8 %w3, %h0;", [](U8 a) { return U32{a}; });
}

TEST_CASE("PTX: conversions of real numbers", "[opcodes]") {
  each_real([](auto real, const std::string& type) {
    using T = decltype(real);
    for (const auto& [way, mode] : kWays) {
      each_narrow_or_whole([&, mode = mode, way = way](auto zero, const std::string& other) {
        using W = decltype(zero);
        check("cvt." + way + "i." + other + "." + type, [=](T a) { return clamped<W>(whole(mode, a)); });
        check("cvt." + way + "." + type + "." + other, [=](W a) { return cast<T>(mode, a); });
      });
      check("cvt." + way + "i." + type + "." + type, [=, mode = mode](T a) { return whole(mode, a); });
    }
    check("cvt.sat." + type + "." + type, [](T a) { return a > 0 ? std::min(a, T{1}) : T{0}; });
  });
  for (const auto& [way, mode] : kWays) {
    check("cvt." + way + ".f32.f64", [mode = mode](double a) { return cast<float>(mode, a); });
    check("cvt." + way + ".ftz.f32.f64", [mode = mode](double a) { return near(cast<float>(mode, a)); });
    check("cvt." + way + "i.ftz.s32.f32", [mode = mode](float a) { return clamped<S32>(whole(mode, near(a))); });
  }
  check("cvt.rn.sat.f32.f64", [](double a) { return a > 0 ? static_cast<float>(std::min(a, 1.0)) : 0.0F; });
  check("cvt.f64.f32", [](float a) { return double{a}; });
  check("cvt.ftz.f64.f32", [](float a) { return double{near(a)}; });
  check("cvt.rn.bf16.f32 %h3, %w0;", [](float a) { return nearest_bf16(a); });
  check("cvt.rn.bf16x2.f32 %w3, %w0, %w1;",
        [](float a, float b) { return U32{nearest_bf16(a)} << 16 | nearest_bf16(b); });
  check("cvt.f32.bf16", [](U16 a) { return value_of<float>(U64{a} << 16); });
}

TEST_CASE("PTX: what is not known is refused with its line") {
  const auto check_refused = [](const auto& action, const char* part) {
    check_says(error_of<std::runtime_error>(action), {part});
  };
  const auto check_unknown = [&](const char* text, const char* part) { check_refused([&] { Kernel(0, text); }, part); };
  check_unknown("mma.sync.aligned.m16n8k8 %w0, %w1, %w2;", "the instruction is unknown");
  check_unknown("add.s32 %w0, %w1, %y2;", "'%y2' is unknown");
  check_unknown("bra $NOWHERE;", "the label '$NOWHERE' is unknown");
  check_unknown("add.rz.f32 %w0, %w1, %w2;", "PTX line");
  check_refused([] { parse(".target sm_90\n.func f() {}\n"); }, "PTX line 2");
  check_unknown("call.uni f, ();", "PTX line");
  check_unknown("call (%w0), f, (%w1);", "PTX line");
}

}  // namespace cairn::tests::ptx::opcode_test
