#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "cairn/tests/ptx/code/decoder.h"
#include "cairn/tests/ptx/code/integers.h"
#include "cairn/tests/ptx/code/lanes.h"
#include "cairn/tests/ptx/code/reals.h"

// This file implements arithmetic: add, addc, sub, mul, mad, fma, div, rem, min, max, abs, neg, copysign, and
// approximations such as sin.
namespace cairn::tests::ptx {
namespace {

/// The integer type that is twice as wide as T, and signed if T is signed.
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, S32, U32>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, S64, U64>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

/// Returns the full product, which is twice as wide as T. Converting it to T gives the lower half.
struct Product {
  template <class T>
  Wide<T> operator()(T a, T b) const {
    return static_cast<Wide<T>>(a) * b;
  }
};
struct UpperHalf {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Product{}(a, b) >> 8 * sizeof(T));
  }
};
template <class Mul>
struct MulAdd {
  template <class T, class R>
  R operator()(T a, T b, R c) const {
    return static_cast<R>(static_cast<R>(Mul{}(a, b)) + c);
  }
};
struct Div {  // a division by zero gives all ones, as on a GPU
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Whole<T>{0} - static_cast<Whole<T>>(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
// If one operand is NaN, min and max return the other operand. std::fmin and std::fmax do not do this if the
// NaN is a signalling one.
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::isnan(a) || b < a || (a == b && std::signbit(b)) ? b : a;  // -0 counts as less than 0
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(a) || b > a || (a == b && std::signbit(a)) ? b : a;
    return a < b ? b : a;
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) return -a;
    return static_cast<T>(Whole<T>{0} - static_cast<Whole<T>>(a));
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
    return a < 0 ? Neg{}(a) : a;
  }
};
/// Applies F to the lower 16 bits and to the upper 16 bits of its operands separately.
template <class F>
struct Halves {
  U32 operator()(U32 a, U32 b) const {
    const U16 low = F{}(static_cast<U16>(a), static_cast<U16>(b));
    const U16 high = F{}(static_cast<U16>(a >> 16), static_cast<U16>(b >> 16));
    return U32{high} << 16 | low;
  }
};

// The following operations work on real numbers. Where PTX permits an approximation, the result here is the exact
// value, rounded. The result of a GPU can differ in the last bits.
struct Fma {
  auto operator()(auto a, auto b, auto c) const { return std::fma(a, b, c); }
};
struct CopySign {  // returns b with the sign of a
  auto operator()(auto a, auto b) const { return std::copysign(b, a); }
};
template <double (*kFunction)(double)>
struct Exactly {
  double operator()(auto a) const { return kFunction(static_cast<double>(a)); }
};
double reciprocal(double a) { return 1 / a; }
double root(double a) { return std::sqrt(a); }
double reciprocal_root(double a) { return 1 / std::sqrt(a); }
double power_of_two(double a) { return std::exp2(a); }
double logarithm(double a) { return std::log2(a); }
double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double hyperbolic(double a) { return std::tanh(a); }

/// Applies F with the modifier .ftz: subnormal operands and results are replaced by zero.
template <class F>
struct Flushed {
  template <class T>
  T operator()(T a, auto... more) const {
    return flushed(static_cast<T>(F{}(flushed(a), flushed(more)...)));
  }
};

template <class F>
Instruction::Run of_whole_numbers(std::string_view type) {
  return choose(type, {{"s16", &binary<F, S16, S16, S16>},
                       {"u16", &binary<F, U16, U16, U16>},
                       {"s32", &binary<F, S32, S32, S32>},
                       {"u32", &binary<F, U32, U32, U32>},
                       {"s64", &binary<F, S64, S64, S64>},
                       {"u64", &binary<F, U64, U64, U64>}});
}
template <class F>
Instruction::Run of_signed(std::string_view type) {
  return choose(type, {{"s16", &unary<F, S16, S16>}, {"s32", &unary<F, S32, S32>}, {"s64", &unary<F, S64, S64>}});
}
/// Returns the code of an operation that is the same for signed and unsigned integers.
template <class F>
Instruction::Run of_bits(std::string_view type) {
  return choose(type, {{"s16", &binary<F, U16, U16, U16>},
                       {"u16", &binary<F, U16, U16, U16>},
                       {"s32", &binary<F, U32, U32, U32>},
                       {"u32", &binary<F, U32, U32, U32>},
                       {"s64", &binary<F, U64, U64, U64>},
                       {"u64", &binary<F, U64, U64, U64>}});
}
template <class F>
Instruction::Run of_reals(const Statement& s) {
  const bool ftz = s.has("ftz");
  return choose(type_of(s), {{"f32", ftz ? &binary<Flushed<F>, float, float, float> : &binary<F, float, float, float>},
                             {"f64", &binary<F, double, double, double>}});
}
template <class F>
Instruction::Run of_one_real(const Statement& s) {
  const bool ftz = s.has("ftz");
  return choose(type_of(s), {{"f32", ftz ? &unary<Flushed<F>, float, float> : &unary<F, float, float>},
                             {"f64", &unary<F, double, double>}});
}

template <class Mul>
Instruction::Run multiply_add(std::string_view type, bool wide) {
  if (wide) {
    return choose(type, {{"s16", &ternary<MulAdd<Product>, S32, S16, S16, S32>},
                         {"u16", &ternary<MulAdd<Product>, U32, U16, U16, U32>},
                         {"s32", &ternary<MulAdd<Product>, S64, S32, S32, S64>},
                         {"u32", &ternary<MulAdd<Product>, U64, U32, U32, U64>}});
  }
  return choose(type, {{"s16", &ternary<MulAdd<Mul>, U16, S16, S16, U16>},
                       {"u16", &ternary<MulAdd<Mul>, U16, U16, U16, U16>},
                       {"s32", &ternary<MulAdd<Mul>, U32, S32, S32, U32>},
                       {"u32", &ternary<MulAdd<Mul>, U32, U32, U32, U32>},
                       {"s64", &ternary<MulAdd<Mul>, U64, S64, S64, U64>},
                       {"u64", &ternary<MulAdd<Mul>, U64, U64, U64, U64>}});
}

Instruction::Run multiply(const Statement& s) {
  const std::string_view type = type_of(s);
  if (s.has("wide")) {
    return choose(type, {{"s16", &binary<Product, S32, S16, S16>},
                         {"u16", &binary<Product, U32, U16, U16>},
                         {"s32", &binary<Product, S64, S32, S32>},
                         {"u32", &binary<Product, U64, U32, U32>}});
  }
  return s.has("hi") ? of_whole_numbers<UpperHalf>(type) : of_bits<Product>(type);
}

/// Adds two numbers. If kIn is set, it also adds the lane's carry bit. If kOut is set, it stores the carry of the sum.
template <class T, bool kIn, bool kOut>
void add_with_carry(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<T>>(i.d);
  const auto* const a = warp.slots<Bits<T>>(i.a);
  const auto* const b = warp.slots<Bits<T>>(i.b);
  Mask carry = warp.carry;
  each_lane(lanes, [&](int l) {
    const auto sum = static_cast<Wide<T>>(a[l]) + b[l] + (kIn ? carry >> l & 1U : 0U);
    d[l] = static_cast<T>(sum);
    if (kOut) carry = (carry & ~(1U << l)) | static_cast<Mask>(sum >> 8 * sizeof(T)) << l;
  });
  warp.carry = carry;
}

Instruction::Run carried_sum(const Statement& s) {
  const bool in = s.opcode == "addc", out = s.has("cc");
  const std::string_view type = type_of(s);
  if (bits_of(type) == 64)
    return in ? out ? &add_with_carry<U64, true, true> : &add_with_carry<U64, true, false>
              : &add_with_carry<U64, false, true>;
  return in ? out ? &add_with_carry<U32, true, true> : &add_with_carry<U32, true, false>
            : &add_with_carry<U32, false, true>;
}

Instruction::Run of_two(const Statement& s, bool real) {
  const std::string_view type = type_of(s);
  if (s.opcode == "addc" || (s.opcode == "add" && s.has("cc"))) return carried_sum(s);
  if (s.opcode == "add") return real ? of_reals<std::plus<>>(s) : of_bits<std::plus<>>(type);
  if (s.opcode == "sub") return real ? of_reals<std::minus<>>(s) : of_bits<std::minus<>>(type);
  if (s.opcode == "mul") return real ? of_reals<std::multiplies<>>(s) : multiply(s);
  if (s.opcode == "div") return real ? of_reals<std::divides<>>(s) : of_whole_numbers<Div>(type);
  if (s.opcode == "copysign" && real) return of_reals<CopySign>(s);
  if (s.opcode == "rem" && !real) return of_whole_numbers<Rem>(type);
  if (type == "u16x2") {
    if (s.opcode == "min") return &binary<Halves<Min>, U32, U32, U32>;
    if (s.opcode == "max") return &binary<Halves<Max>, U32, U32, U32>;
  }
  if (s.opcode == "min") return real ? of_reals<Min>(s) : of_whole_numbers<Min>(type);
  if (s.opcode == "max") return real ? of_reals<Max>(s) : of_whole_numbers<Max>(type);
  return nullptr;
}

Instruction::Run of_one(const Statement& s, bool real) {
  const std::string_view type = type_of(s);
  if (s.opcode == "abs") return real ? of_one_real<Abs>(s) : of_signed<Abs>(type);
  if (s.opcode == "neg") return real ? of_one_real<Neg>(s) : of_signed<Neg>(type);
  if (s.opcode == "rcp") return of_one_real<Exactly<reciprocal>>(s);
  if (s.opcode == "sqrt") return of_one_real<Exactly<root>>(s);
  if (s.opcode == "rsqrt") return of_one_real<Exactly<reciprocal_root>>(s);
  if (s.opcode == "ex2") return of_one_real<Exactly<power_of_two>>(s);
  if (s.opcode == "lg2") return of_one_real<Exactly<logarithm>>(s);
  if (s.opcode == "sin") return of_one_real<Exactly<sine>>(s);
  if (s.opcode == "cos") return of_one_real<Exactly<cosine>>(s);
  if (s.opcode == "tanh") return of_one_real<Exactly<hyperbolic>>(s);
  return nullptr;
}

Instruction::Run of_three(const Statement& s) {
  const std::string_view type = type_of(s);
  if (s.opcode == "fma") {
    return choose(type, {{"f32", s.has("ftz") ? &ternary<Flushed<Fma>, float, float, float, float>
                                              : &ternary<Fma, float, float, float, float>},
                         {"f64", &ternary<Fma, double, double, double, double>}});
  }
  if (s.opcode == "mad" && type.front() != 'f')
    return s.has("hi") ? multiply_add<UpperHalf>(type, false) : multiply_add<Product>(type, s.has("wide"));
  return nullptr;
}

}  // namespace

bool decode_arithmetic(const Statement& statement, Decoder& decoder, Instruction& into) {
  const std::string_view type = type_of(statement);
  if (type.empty()) return false;
  const bool real = type.front() == 'f';
  const int bits = bits_of(type), wide = statement.has("wide") ? 2 * bits : bits;
  const std::size_t operands = statement.operands.size();
  into.run = operands == 2   ? of_one(statement, real)
             : operands == 3 ? of_two(statement, real)
             : operands == 4 ? of_three(statement)
                             : nullptr;
  if (into.run == nullptr) return false;
  into.kind = real ? Class::real : Class::integer;
  into.d = decoder.place(statement.operands[0], wide);
  into.a = decoder.place(statement.operands[1], bits);
  if (operands > 2) into.b = decoder.place(statement.operands[2], bits);
  if (operands > 3) into.c = decoder.place(statement.operands[3], wide);
  return true;
}

}  // namespace cairn::tests::ptx
