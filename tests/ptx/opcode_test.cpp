// Compares each opcode with an expression in C++, on random values and on values at the edges of the types.
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/ptx/code/reals.h"
#include "cairn/tests/ptx/kernel.h"

namespace cairn::tests::ptx::opcode_test {
namespace {

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S8 = std::int8_t;
using S16 = std::int16_t;
using S32 = std::int32_t;
using S64 = std::int64_t;

/// A test of an instruction. Its operands a, b and c are in registers %x0, %x1 and %x2. Their lower 32 bits are in %w0
/// to %w2, and their lower 16 bits in %h0 to %h2. `result` is the letter of the register with the result: %x3, %w3, %h3
/// or %p1.
struct Case {
  std::string text;
  char result;
  std::function<U64(U64 a, U64 b, U64 c)> expected;
};

struct Triple {
  U64 a, b, c;
};

std::vector<Triple> edge_values() {
  std::vector<U64> edges{0,    1,    2,    3,      5,      31,     32,      33,         63,         64,        65,
                         0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff};
  edges.insert(edges.end(),
               {0x100000000, 0x4000000000000000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0x3f800000,
                0xbf800000, 0x7f800000, 0x7f800001, 0x7fc00000, 0x13f000000, 0x40490fdb, 0x0123456789abcdef});
  std::mt19937_64 random(1);
  std::vector<Triple> all;
  for (const U64 a : edges) {
    for (const U64 b : edges) all.push_back({a, b, edges[random() % edges.size()]});
  }
  for (int i = 0; i < 400; ++i) all.push_back({random(), random(), random()});
  return all;
}

void check(const Case& one) {
  static const std::vector<Triple> values = edge_values();
  const std::string widen = one.result == 'w'   ? "cvt.u64.u32 %x3, %w3;"
                            : one.result == 'h' ? "cvt.u64.u16 %x3, %h3;"
                            : one.result == 'p' ? "selp.b64 %x3, 1, 0, %p1;"
                                                : "";
  Kernel kernel(3, R"(
mov.u32 %w10, %ctaid.x;
mov.u32 %w11, %ntid.x;
mov.u32 %w12, %tid.x;
mad.lo.s32 %w13, %w10, %w11, %w12;
cvt.u64.u32 %x10, %w13;
ld.param.u64 %x11, [p2];
setp.ge.u64 %p0, %x10, %x11;
@%p0 bra $END;
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
)" + one.text + "\n" + widen +
                       R"(
ld.param.u64 %x14, [p1];
shl.b64 %x15, %x10, 3;
add.s64 %x14, %x14, %x15;
st.global.u64 [%x14], %x3;
$END:
)");
  Memory memory;
  U64* const in = memory.numbers(3 * values.size());
  U64* const out = memory.numbers(values.size(), false);
  std::memcpy(in, values.data(), values.size() * sizeof(Triple));
  const auto blocks = static_cast<U32>((values.size() + 63) / 64);
  kernel.run(memory, {address(in), address(out), values.size()}, {blocks}, {64});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const U64 expected = one.expected(values[i].a, values[i].b, values[i].c);
    if (out[i] == expected) continue;
    FAIL(one.text << " of " << std::hex << values[i].a << ", " << values[i].b << ", " << values[i].c << " is " << out[i]
                  << ", expected " << expected);
  }
}
void check_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) check(one);
  CHECK(!cases.empty());
}

float real(U64 bits) { return std::bit_cast<float>(static_cast<U32>(bits)); }
double big(U64 bits) { return std::bit_cast<double>(bits); }
U64 bits_of_real(float value) { return std::bit_cast<U32>(value); }
U64 bits_of_big(double value) { return std::bit_cast<U64>(value); }

}  // namespace

TEST_CASE("PTX: sums, products and quotients of whole numbers") {
  check_all({
      {"add.s32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(a) + U32(b)} & 0xffffffff; }},
      {"add.s64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return a + b; }},
      {"add.s16 %h3, %h0, %h1;", 'h', [](U64 a, U64 b, U64) { return U64{U16(a + b)}; }},
      {"add.s32 %w3, %w0, -7;", 'w', [](U64 a, U64, U64) { return U64{U32(a - 7)}; }},
      {"sub.s32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(a - b)}; }},
      {"sub.s64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return a - b; }},
      {"mul.lo.s32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(a * b)}; }},
      {"mul.lo.s64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return a * b; }},
      {"mul.lo.s16 %h3, %h0, %h1;", 'h', [](U64 a, U64 b, U64) { return U64{U16(a * b)}; }},
      {"mul.hi.s32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(S64{S32(a)} * S32(b) >> 32)}; }},
      {"mul.hi.u32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(a)} * U32(b) >> 32; }},
      {"mul.hi.s64 %x3, %x0, %x1;", 'x',
       [](U64 a, U64 b, U64) { return static_cast<U64>(static_cast<__int128>(S64(a)) * S64(b) >> 64); }},
      {"mul.hi.u64 %x3, %x0, %x1;", 'x',
       [](U64 a, U64 b, U64) { return static_cast<U64>(static_cast<unsigned __int128>(a) * b >> 64); }},
      {"mul.wide.s32 %x3, %w0, %w1;", 'x', [](U64 a, U64 b, U64) { return static_cast<U64>(S64{S32(a)} * S32(b)); }},
      {"mul.wide.u32 %x3, %w0, %w1;", 'x', [](U64 a, U64 b, U64) { return U64{U32(a)} * U32(b); }},
      {"mul.wide.u16 %w3, %h0, %h1;", 'w', [](U64 a, U64 b, U64) { return U64{U32{U16(a)} * U16(b)}; }},
      {"mul.wide.s16 %w3, %h0, %h1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(S32{S16(a)} * S16(b))}; }},
      {"mad.lo.s32 %w3, %w0, %w1, %w2;", 'w', [](U64 a, U64 b, U64 c) { return U64{U32(a * b + c)}; }},
      {"mad.lo.s64 %x3, %x0, %x1, %x2;", 'x', [](U64 a, U64 b, U64 c) { return a * b + c; }},
      {"mad.wide.u32 %x3, %w0, %w1, %x2;", 'x', [](U64 a, U64 b, U64 c) { return U64{U32(a)} * U32(b) + c; }},
      {"mad.wide.s32 %x3, %w0, %w1, %x2;", 'x',
       [](U64 a, U64 b, U64 c) { return static_cast<U64>(S64{S32(a)} * S32(b)) + c; }},
      {"div.u32 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) { return U32(b) == 0 ? U64{~U32{0}} : U64{U32(a) / U32(b)}; }},
      {"div.u64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return b == 0 ? ~U64{0} : a / b; }},
      {"div.s64 %x3, %x0, %x1;", 'x',
       [](U64 a, U64 b, U64) { return b == 0         ? ~U64{0}
                                      : b == ~U64{0} ? 0 - a
                                                     : static_cast<U64>(S64(a) / S64(b)); }},
      {"div.s32 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) { return U32(b) == 0 ? U64{~U32{0}} : U64{U32(S64{S32(a)} / S32(b))}; }},
      {"rem.u32 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) { return U32(b) == 0 ? U64{U32(a)} : U64{U32(a) % U32(b)}; }},
      {"rem.s64 %x3, %x0, %x1;", 'x',
       [](U64 a, U64 b, U64) { return b == 0         ? a
                                      : b == ~U64{0} ? 0
                                                     : static_cast<U64>(S64(a) % S64(b)); }},
      {"min.s32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(std::min(S32(a), S32(b)))}; }},
      {"max.s64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return static_cast<U64>(std::max(S64(a), S64(b))); }},
      {"min.u64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return std::min(a, b); }},
      {"max.u32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{std::max(U32(a), U32(b))}; }},
      {"min.u16x2 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) {
         return U64{U32{std::min(U16(a >> 16), U16(b >> 16))} << 16 | std::min(U16(a), U16(b))};
       }},
      {"max.u16x2 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) {
         return U64{U32{std::max(U16(a >> 16), U16(b >> 16))} << 16 | std::max(U16(a), U16(b))};
       }},
      {"abs.s32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return U64{S32(a) < 0 ? 0 - U32(a) : U32(a)}; }},
      {"neg.s64 %x3, %x0;", 'x', [](U64 a, U64, U64) { return 0 - a; }},
      {"neg.s32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return U64{0 - U32(a)}; }},
      {"add.cc.s64 %x4, %x0, %x1;\naddc.cc.s64 %x3, %x2, 0;", 'x',
       [](U64 a, U64 b, U64 c) { return c + (a + b < a ? 1 : 0); }},
  });
}

TEST_CASE("PTX: bits") {
  check_all({
      {"and.b32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(a & b)}; }},
      {"and.b16 %h3, %h0, %h1;", 'h', [](U64 a, U64 b, U64) { return U64{U16(a & b)}; }},
      {"or.b64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return a | b; }},
      {"xor.b64 %x3, %x0, %x1;", 'x', [](U64 a, U64 b, U64) { return a ^ b; }},
      {"not.b32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return U64{~U32(a)}; }},
      {"not.b64 %x3, %x0;", 'x', [](U64 a, U64, U64) { return ~a; }},
      {"shl.b32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U32(b) > 31 ? 0 : U64{U32(a) << U32(b)}; }},
      {"shl.b64 %x3, %x0, %w1;", 'x', [](U64 a, U64 b, U64) { return U32(b) > 63 ? 0 : a << U32(b); }},
      {"shr.u32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U32(b) > 31 ? 0 : U64{U32(a) >> U32(b)}; }},
      {"shr.s32 %w3, %w0, %w1;", 'w', [](U64 a, U64 b, U64) { return U64{U32(S32(a) >> std::min<U32>(U32(b), 31))}; }},
      {"shr.u64 %x3, %x0, %w1;", 'x', [](U64 a, U64 b, U64) { return U32(b) > 63 ? 0 : a >> U32(b); }},
      {"shr.s64 %x3, %x0, %w1;", 'x',
       [](U64 a, U64 b, U64) { return static_cast<U64>(S64(a) >> std::min<U32>(U32(b), 63)); }},
      {"shr.s16 %h3, %h0, %w1;", 'h', [](U64 a, U64 b, U64) { return U64{U16(S16(a) >> std::min<U32>(U32(b), 15))}; }},
      {"clz.b32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return static_cast<U64>(std::countl_zero(U32(a))); }},
      {"clz.b64 %w3, %x0;", 'w', [](U64 a, U64, U64) { return static_cast<U64>(std::countl_zero(a)); }},
      {"popc.b32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return static_cast<U64>(std::popcount(U32(a))); }},
      {"popc.b64 %w3, %x0;", 'w', [](U64 a, U64, U64) { return static_cast<U64>(std::popcount(a)); }},
      {"brev.b32 %w3, %w0;", 'w',
       [](U64 a, U64, U64) {
         U64 reversed = 0;
         for (int i = 0; i < 32; ++i) reversed |= (a >> i & 1) << (31 - i);
         return reversed;
       }},
      {"bfind.u32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return U64{U32(31 - std::countl_zero(U32(a)))}; }},
      {"bfind.shiftamt.u32 %w3, %w0;", 'w',
       [](U64 a, U64, U64) { return U32(a) == 0 ? U64{~U32{0}} : U64(std::countl_zero(U32(a))); }},
      {"bfind.s32 %w3, %w0;", 'w',
       [](U64 a, U64, U64) {
         const U32 value = S32(a) < 0 ? ~U32(a) : U32(a);
         return U64{U32(31 - std::countl_zero(value))};
       }},
      {"bmsk.clamp.b32 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) {
         U64 mask = 0;
         for (U64 i = U32(a); i < 32 && i < U64{U32(a)} + U32(b); ++i) mask |= U64{1} << i;
         return mask;
       }},
      {"bfe.u32 %w3, %w0, %w1, %w2;", 'w',
       [](U64 a, U64 b, U64 c) {
         U64 value = 0;
         for (U32 i = 0; i < (c & 255) && i < 32; ++i) {
           const U32 from = U32(b & 255) + i;
           if (from < 32) value |= (a >> from & 1) << i;
         }
         return value;
       }},
      {"bfi.b32 %w3, %w0, %w1, 4, 9;", 'w',
       [](U64 a, U64 b, U64) { return U64{(U32(b) & ~U32{0x1ff0}) | (U32(a) & 0x1ff) << 4}; }},
      {"prmt.b32 %w3, %w0, %w1, 0x5410;", 'w', [](U64 a, U64 b, U64) { return (b & 0xffff) << 16 | (a & 0xffff); }},
      {"prmt.b32 %w3, %w0, %w1, 0x9b76;", 'w',
       [](U64 a, U64 b, U64) {
         const U64 sign1 = (a & 0x8000) != 0 ? 0xff : 0, sign3 = (a & 0x80000000) != 0 ? 0xff : 0;
         return sign1 << 24 | sign3 << 16 | (b >> 24 & 255) << 8 | (b >> 16 & 255);
       }},
      {"shf.l.wrap.b32 %w3, %w0, %w1, %w2;", 'w',
       [](U64 a, U64 b, U64 c) { return U64{U32(((b & 0xffffffff) << 32 | (a & 0xffffffff)) << (c & 31) >> 32)}; }},
      {"shf.r.clamp.b32 %w3, %w0, %w1, %w2;", 'w',
       [](U64 a, U64 b, U64 c) {
         return U64{U32(((b & 0xffffffff) << 32 | (a & 0xffffffff)) >> std::min<U32>(U32(c), 32))};
       }},
      {"lop3.b32 %w3, %w0, %w1, %w2, 0xd8;", 'w',
       [](U64 a, U64 b, U64 c) {
         U64 value = 0;
         for (int i = 0; i < 32; ++i)
           value |= (U64{0xd8} >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
         return value;
       }},
  });
}

TEST_CASE("PTX: comparisons and choices") {
  check_all({
      {"setp.lt.s32 %p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{S32(a) < S32(b)}; }},
      {"setp.lt.u32 %p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{U32(a) < U32(b)}; }},
      {"setp.lo.u32 %p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{U32(a) < U32(b)}; }},
      {"setp.ge.s64 %p1, %x0, %x1;", 'p', [](U64 a, U64 b, U64) { return U64{S64(a) >= S64(b)}; }},
      {"setp.le.u64 %p1, %x0, %x1;", 'p', [](U64 a, U64 b, U64) { return U64{a <= b}; }},
      {"setp.ne.s16 %p1, %h0, %h1;", 'p', [](U64 a, U64 b, U64) { return U64{U16(a) != U16(b)}; }},
      {"setp.gt.s16 %p1, %h0, %h1;", 'p', [](U64 a, U64 b, U64) { return U64{S16(a) > S16(b)}; }},
      {"setp.eq.b32 %p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{U32(a) == U32(b)}; }},
      {"setp.lt.f32 %p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{real(a) < real(b)}; }},
      {"setp.neu.f32 %p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{!(real(a) == real(b))}; }},
      {"setp.ne.f32 %p1, %w0, %w1;", 'p',
       [](U64 a, U64 b, U64) { return U64{real(a) != real(b) && !std::isnan(real(a)) && !std::isnan(real(b))}; }},
      {"setp.gtu.f64 %p1, %x0, %x1;", 'p', [](U64 a, U64 b, U64) { return U64{!(big(a) <= big(b))}; }},
      {"setp.num.f32 %p1, %w0, %w1;", 'p',
       [](U64 a, U64 b, U64) { return U64{!std::isnan(real(a)) && !std::isnan(real(b))}; }},
      {"setp.lt.and.s32 %p1, %w0, %w1, %p2;", 'p', [](U64 a, U64 b, U64 c) { return U64{S32(a) < S32(b) && c != 0}; }},
      {"setp.lt.or.s32 %p1, %w0, %w1, !%p2;", 'p', [](U64 a, U64 b, U64 c) { return U64{S32(a) < S32(b) || c == 0}; }},
      {"setp.eq.s32 %p3|%p1, %w0, %w1;", 'p', [](U64 a, U64 b, U64) { return U64{U32(a) != U32(b)}; }},
      {"selp.b64 %x3, %x0, %x1, %p2;", 'x', [](U64 a, U64 b, U64 c) { return c != 0 ? a : b; }},
      {"selp.u16 %h3, %h0, %h1, %p2;", 'h', [](U64 a, U64 b, U64 c) { return U64{U16(c != 0 ? a : b)}; }},
      {"setp.lt.u64 %p3, %x0, %x1;\nand.pred %p1, %p3, %p2;", 'p',
       [](U64 a, U64 b, U64 c) { return U64{a < b && c != 0}; }},
      {"setp.lt.u64 %p3, %x0, %x1;\nxor.pred %p1, %p3, %p2;", 'p',
       [](U64 a, U64 b, U64 c) { return U64{(a < b) != (c != 0)}; }},
      {"not.pred %p1, %p2;", 'p', [](U64, U64, U64 c) { return U64{c == 0}; }},
      {"mov.pred %p1, -1;\n@%p2 mov.pred %p1, 0;", 'p', [](U64, U64, U64 c) { return U64{c == 0}; }},
      {"mov.b64 {%w4, %w5}, %x0;\nmov.b64 %x3, {%w5, %w4};", 'x', [](U64 a, U64, U64) { return a << 32 | a >> 32; }},
      {"mov.b32 {%h4, %h5}, %w0;\nmov.b32 %w3, {%h5, %h4};", 'w',
       [](U64 a, U64, U64) { return (a & 0xffff) << 16 | (a >> 16 & 0xffff); }},
      {"mov.b64 {_, %w5}, %x0;\nmov.u32 %w3, %w5;", 'w', [](U64 a, U64, U64) { return a >> 32; }},
  });
}

TEST_CASE("PTX: conversions") {
  const auto to_s32 = [](float value) {
    if (std::isnan(value)) return U64{0};
    const double whole = std::trunc(static_cast<double>(value));
    return U64{U32(static_cast<S32>(std::fmin(std::fmax(whole, -2147483648.0), 2147483647.0)))};
  };
  check_all({
      {"cvt.u32.u16 %w3, %h0;", 'w', [](U64 a, U64, U64) { return U64{U16(a)}; }},
      {"cvt.s32.s16 %w3, %h0;", 'w', [](U64 a, U64, U64) { return U64{U32(S32{S16(a)})}; }},
      {"cvt.s64.s32 %x3, %w0;", 'x', [](U64 a, U64, U64) { return static_cast<U64>(S64{S32(a)}); }},
      {"cvt.s64.s32 %x3, %x0;", 'x', [](U64 a, U64, U64) { return static_cast<U64>(S64{S32(a)}); }},
      {"cvt.u64.u32 %x3, %w0;", 'x', [](U64 a, U64, U64) { return U64{U32(a)}; }},
      {"cvt.s64.s8 %x3, %w0;", 'x', [](U64 a, U64, U64) { return static_cast<U64>(S64{S8(a)}); }},
      {"cvt.u16.u32 %h3, %w0;", 'h', [](U64 a, U64, U64) { return U64{U16(a)}; }},
      {"cvt.u16.u8 %h3, %h0;", 'h', [](U64 a, U64, U64) { return U64{U8(a)}; }},
      {"cvt.rn.f32.s32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return bits_of_real(static_cast<float>(S32(a))); }},
      {"cvt.rn.f32.u64 %w3, %x0;", 'w', [](U64 a, U64, U64) { return bits_of_real(static_cast<float>(a)); }},
      {"cvt.rn.f64.s64 %x3, %x0;", 'x', [](U64 a, U64, U64) { return bits_of_big(static_cast<double>(S64(a))); }},
      {"cvt.rzi.s32.f32 %w3, %w0;", 'w', [&](U64 a, U64, U64) { return to_s32(real(a)); }},
      {"cvt.f64.f32 %x3, %w0;\nsetp.num.f64 %p3, %x3, %x3;\nselp.b64 %x3, %x3, 0, %p3;", 'x',
       [](U64 a, U64, U64) { return std::isnan(real(a)) ? 0 : bits_of_big(static_cast<double>(real(a))); }},
      {"setp.num.f64 %p3, %x0, %x0;\ncvt.rn.f32.f64 %w3, %x0;\nselp.b32 %w3, %w3, 0, %p3;", 'w',
       [](U64 a, U64, U64) { return std::isnan(big(a)) ? 0 : bits_of_real(static_cast<float>(big(a))); }},
      {"setp.num.f32 %p3, %w0, %w0;\ncvt.rmi.f32.f32 %w3, %w0;\nselp.b32 %w3, %w3, 0, %p3;", 'w',
       [](U64 a, U64, U64) { return std::isnan(real(a)) ? 0 : bits_of_real(std::floor(real(a))); }},
      {"cvt.rn.bf16.f32 %h3, %w0;", 'h', [](U64 a, U64, U64) { return U64{to_bf16(real(a))}; }},
      {"cvt.rn.bf16x2.f32 %w3, %w0, %w1;", 'w',
       [](U64 a, U64 b, U64) { return U64{U32{to_bf16(real(a))} << 16 | to_bf16(real(b))}; }},
      {"cvt.sat.u8.s32 %w3, %w0;", 'w', [](U64 a, U64, U64) { return U64{U32(std::clamp(S32(a), 0, 255))}; }},
  });
}

TEST_CASE("PTX: real numbers") {
  // NaN has many bit patterns. All of them are replaced by the same one before the comparison.
  const auto same = [](const std::string& text, const std::function<float(float, float, float)>& f) {
    return Case{text + "\nsetp.num.f32 %p3, %w3, %w3;\nselp.b32 %w3, %w3, 0x7fc00000, %p3;", 'w',
                [f](U64 a, U64 b, U64 c) {
                  const float value = f(real(a), real(b), real(c));
                  return std::isnan(value) ? 0x7fc00000 : bits_of_real(value);
                }};
  };
  const auto near = [](float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x;
  };
  check_all({
      same("add.f32 %w3, %w0, %w1;", [](float a, float b, float) { return a + b; }),
      same("add.rn.ftz.f32 %w3, %w0, %w1;", [=](float a, float b, float) { return near(near(a) + near(b)); }),
      same("sub.f32 %w3, %w0, %w1;", [](float a, float b, float) { return a - b; }),
      same("mul.f32 %w3, %w0, %w1;", [](float a, float b, float) { return a * b; }),
      same("mul.f32 %w3, %w0, 0fBF000000;", [](float a, float, float) { return a * -0.5F; }),
      same("fma.rn.f32 %w3, %w0, %w1, %w2;", [](float a, float b, float c) { return std::fma(a, b, c); }),
      same("div.rn.f32 %w3, %w0, %w1;", [](float a, float b, float) { return a / b; }),
      // The smaller of 0 and -0 is -0. If one operand is NaN, the result is the other one.
      same("min.f32 %w3, %w0, %w1;",
           [](float a, float b, float) { return std::isnan(a) || b < a || (a == b && std::signbit(b)) ? b : a; }),
      same("max.f32 %w3, %w0, %w1;",
           [](float a, float b, float) { return std::isnan(a) || b > a || (a == b && std::signbit(a)) ? b : a; }),
      same("copysign.f32 %w3, %w0, %w1;", [](float a, float b, float) { return std::copysign(b, a); }),
      same("abs.f32 %w3, %w0;", [](float a, float, float) { return std::fabs(a); }),
      same("neg.f32 %w3, %w0;", [](float a, float, float) { return -a; }),
      same("sqrt.rn.f32 %w3, %w0;", [](float a, float, float) { return std::sqrt(a); }),
      same("rcp.rn.f32 %w3, %w0;", [](float a, float, float) { return 1.0F / a; }),
      same("ex2.approx.f32 %w3, %w0;", [](float a, float, float) { return static_cast<float>(std::exp2(double{a})); }),
      same("lg2.approx.f32 %w3, %w0;", [](float a, float, float) { return static_cast<float>(std::log2(double{a})); }),
  });
  check({"add.f64 %x3, %x0, %x1;\nsetp.num.f64 %p3, %x3, %x3;\nselp.b64 %x3, %x3, 0, %p3;", 'x', [](U64 a, U64 b, U64) {
           const double sum = big(a) + big(b);
           return std::isnan(sum) ? 0 : bits_of_big(sum);
         }});
}

TEST_CASE("PTX: what is not known is refused with its line") {
  CHECK_THROWS_WITH(Kernel(0, "mma.sync.aligned.m16n8k8 %w0, %w1, %w2;"),
                    Catch::Contains("the instruction is unknown"));
  CHECK_THROWS_WITH(Kernel(0, "add.s32 %w0, %w1, %y2;"), Catch::Contains("'%y2' is unknown"));
  CHECK_THROWS_WITH(Kernel(0, "bra $NOWHERE;"), Catch::Contains("the label '$NOWHERE' is unknown"));
  CHECK_THROWS_WITH(Kernel(0, "add.rz.f32 %w0, %w1, %w2;"), Catch::Contains("PTX line"));
  CHECK_THROWS_WITH(parse(".target sm_90\n.func f() {}\n"), Catch::Contains("PTX line 2"));
  CHECK_THROWS_WITH(Kernel(0, "call.uni f, ();"), Catch::Contains("PTX line"));
  CHECK_THROWS_WITH(Kernel(0, "call (%w0), f, (%w1);"), Catch::Contains("PTX line"));
}

}  // namespace cairn::tests::ptx::opcode_test
