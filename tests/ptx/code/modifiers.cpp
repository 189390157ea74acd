#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/tests/ptx/code/decoder.h"

// This file lists the modifiers with which each opcode is implemented. All other modifiers are refused: the decoder
// would ignore them, and the instruction would not do the same as on a GPU.
namespace cairn::tests::ptx {
namespace {

/// A form that instructions can have. `modifiers` lists what may follow the opcode, in this order, with entries
/// separated by spaces. An entry consists of alternatives separated by "|". A "?" at the end of an entry says that it
/// may be absent. An alternative in capital letters stands for all words in the entry of kSets with this name.
struct Form {
  std::string_view opcodes, modifiers;
};

struct Set {
  std::string_view name, words;
};
constexpr Set kSets[] = {
    {"INT", "s16|u16|s32|u32|s64|u64"},
    {"SIGNED", "s16|s32|s64"},
    {"BITS", "b16|b32|b64"},
    {"NARROW", "s8|u8|s16|u16|s32|u32|s64|u64"},
    {"ANY", "b8|s8|u8|b16|s16|u16|b32|s32|u32|f32|b64|s64|u64|f64"},
    {"SCOPE", "cta|gpu|sys"},
    {"SPACE", "global|shared|shared::cta|local"},
    {"CACHE", "ca|cg|cs|lu|cv|wb|wt"},
    {"EVICT", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"FETCH", "L2::64B|L2::128B|L2::256B"},
    {"ROUND", "rn|rz|rm|rp"},
    {"WHOLE", "rni|rzi|rmi|rpi"},
    {"ORDER", "eq|ne|lt|le|gt|ge"},
    {"REALS", "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"WITH", "and|or|xor"},
};

constexpr Form kForms[] = {
    // The following forms are copies, selections and comparisons.
    {"mov", "BITS|INT|f32|f64|pred"},
    {"selp", "BITS|INT|f32|f64"},
    {"setp", "eq|ne WITH? BITS"},
    {"setp", "ORDER WITH? INT"},
    {"setp", "lo|ls|hi|hs WITH? u16|u32|u64"},
    {"setp", "REALS WITH? f32|f64"},
    {"cvta", "to? global|shared|local|const u64"},
    // The following forms are arithmetic. They include only rounding to the nearest, because the compiler uses no other
    // rounding for Cairn's kernels.
    {"add sub", "INT"},
    {"add addc", "cc? s32|u32|s64|u64"},
    {"mul mad", "lo|hi INT"},
    {"mul mad", "wide s16|u16|s32|u32"},
    {"div rem min max", "INT"},
    {"min max", "u16x2"},
    {"abs neg", "SIGNED"},
    {"add sub mul", "rn? ftz? f32"},
    {"add sub mul", "rn? f64"},
    {"fma", "rn ftz? f32"},
    {"fma div rcp sqrt", "rn f64"},
    {"div", "rn|approx|full ftz? f32"},
    {"rcp sqrt", "rn|approx ftz? f32"},
    {"rsqrt ex2 lg2 sin cos", "approx ftz? f32"},
    {"rsqrt", "approx f64"},
    {"tanh", "approx f32"},
    {"min max abs neg", "ftz? f32"},
    {"min max abs neg", "f64"},
    {"copysign", "f32|f64"},
    // The following forms are operations on bits.
    {"and or xor not", "BITS|pred"},
    {"shl", "BITS"},
    {"shr", "BITS|INT"},
    {"clz popc brev bfi", "b32|b64"},
    {"bfind", "shiftamt? s32|u32|s64|u64"},
    {"bfe", "s32|u32|s64|u64"},
    {"bmsk", "clamp b32"},
    {"prmt lop3", "b32"},
    {"shf", "l|r wrap|clamp b32"},
    // The following forms are conversions.
    {"cvt", "sat? NARROW NARROW"},
    {"cvt", "WHOLE ftz? sat? NARROW f32"},
    {"cvt", "WHOLE sat? NARROW f64"},
    {"cvt", "ROUND sat? f32|f64 NARROW"},
    {"cvt", "WHOLE? ftz? sat? f32 f32"},
    {"cvt", "WHOLE? sat? f64 f64"},
    {"cvt", "ROUND ftz? sat? f32 f64"},
    {"cvt", "ftz? sat? f64 f32"},
    {"cvt", "rn bf16|bf16x2 f32"},
    {"cvt", "f32 bf16"},
    // The following forms are accesses to memory. Hints for the caches are accepted, because they do not change
    // results.
    {"ld", "weak|volatile? SPACE|const|param? CACHE? nc? EVICT? FETCH? v2|v4? ANY"},
    {"ld", "relaxed|acquire SCOPE SPACE? EVICT? FETCH? v2|v4? ANY"},
    {"ldu", "global? v2|v4? ANY"},
    {"st", "weak|volatile? SPACE? CACHE? EVICT? v2|v4? ANY"},
    {"st", "relaxed|release SCOPE SPACE? EVICT? v2|v4? ANY"},
    {"atom red", "relaxed|acquire|release|acq_rel? SCOPE? SPACE? add s32|u32|s64|u64|f32|f64"},
    {"atom red", "relaxed|acquire|release|acq_rel? SCOPE? SPACE? min|max s32|u32|s64|u64"},
    {"atom red", "relaxed|acquire|release|acq_rel? SCOPE? SPACE? inc|dec u32"},
    {"atom red", "relaxed|acquire|release|acq_rel? SCOPE? SPACE? WITH b32|b64"},
    {"atom", "relaxed|acquire|release|acq_rel? SCOPE? SPACE? exch|cas b32|b64"},
    {"membar", "cta|gl|sys"},
    {"fence", "sc|acq_rel SCOPE"},
    // The following forms are control flow, barriers and exchanges.
    {"bra ret", "uni?"},
    {"exit trap brkpt", ""},
    {"nanosleep", "u32"},
    {"activemask", "b32"},
    {"bar", "warp sync"},
    {"bar barrier", "cta? sync aligned?"},
    {"bar barrier", "cta? red or|and aligned? pred"},
    {"bar barrier", "cta? red popc aligned? u32"},
    {"shfl", "sync up|down|bfly|idx b32"},
    {"vote", "sync any|all|uni pred"},
    {"vote", "any|all|uni sync pred"},
    {"vote", "sync ballot b32"},
    {"vote", "ballot sync b32"},
};

/// Splits `text` at separators and calls body(part) for each part until body() returns true. Returns whether it has
/// returned true.
template <class Body>
bool any_part(std::string_view text, char separator, const Body& body) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (body(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool is_one_of(std::string_view word, std::string_view alternatives) {
  return any_part(alternatives, '|', [&](std::string_view one) {
    const auto* const set =
        std::find_if(std::begin(kSets), std::end(kSets), [&](const Set& s) { return s.name == one; });
    return set == std::end(kSets) ? word == one : is_one_of(word, set->words);
  });
}

bool fits(const std::vector<std::string>& modifiers, std::string_view form) {
  std::size_t next = 0;
  const bool lacks_one = any_part(form, ' ', [&](std::string_view entry) {
    const bool optional = entry.ends_with('?');
    if (optional) entry.remove_suffix(1);
    const bool given = next < modifiers.size() && is_one_of(modifiers[next], entry);
    if (given) ++next;
    return !given && !optional;
  });
  return !lacks_one && next == modifiers.size();
}

/// Returns a map from each opcode to its permitted forms.
std::multimap<std::string_view, std::string_view> forms_by_opcode() {
  std::multimap<std::string_view, std::string_view> forms;
  for (const Form& form : kForms) {
    any_part(form.opcodes, ' ', [&](std::string_view opcode) {
      forms.emplace(opcode, form.modifiers);
      return false;
    });
  }
  return forms;
}

}  // namespace

void require_known_modifiers(const Statement& statement) {
  static const std::multimap<std::string_view, std::string_view> forms = forms_by_opcode();
  const auto [begin, end] = forms.equal_range(statement.opcode);
  if (begin == end) return;
  if (std::none_of(begin, end, [&](const auto& form) { return fits(statement.modifiers, form.second); }))
    throw std::runtime_error("the opcode is not implemented with these modifiers");
}

}  // namespace cairn::tests::ptx
