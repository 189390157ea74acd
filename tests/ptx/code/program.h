#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/tests/ptx/text/module.h"

/// These structs hold PTX functions that are ready to run. In them, operands are places in memory, opcodes are pointers
/// to C++ functions, and labels are indices of instructions.
namespace cairn::tests::ptx {

class Warp;

inline constexpr int kLanes = 32;
using Mask = std::uint32_t;  ///< one bit per lane
inline constexpr Mask kAllLanes = ~Mask{0};

/// Calls body(lane) for each lane of the mask. If all 32 lanes take part, the loop is free of branches, so that the
/// compiler can vectorise it.
template <class Body>
void each_lane(Mask lanes, const Body& body) {
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) body(std::countr_zero(rest));
  }
}

/// Says where the values of an operand are, one for each lane. Registers, constants and special registers are in
/// separate arrays (banks). The 32 values of a predicate register are the bits of one Mask.
struct Place {
  enum class Bank : std::uint8_t { registers, constants, specials };
  Bank bank = Bank::registers;
  Slot slot = Slot::word;
  std::uint32_t offset = 0;  ///< offset in the bank, in bytes; for a predicate register, its index

  static Place none() { return {Bank::constants, Slot::word, ~0U}; }
  bool given() const { return offset != ~0U; }
};

/// PTX's special registers, such as the indices of a thread and of its block. They hold 32 bits per lane.
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  dynamic_smem_size,
  total_smem_size,
  count
};

/// Kinds of instructions. Instructions of different kinds are counted separately.
enum class Class : std::uint8_t {
  integer,
  real,
  conversion,
  move,
  compare,
  control,
  load,
  store,
  atomic,
  barrier,
  exchange,
  fence,
  count
};

/// The names of the kinds of instructions, in the order of Class.
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Class::count)> kClassNames{
    "integer", "real",  "conversion", "move",    "compare",  "control",
    "load",    "store", "atomic",     "barrier", "exchange", "fence"};

/// Says how a barrier combines the predicates of its threads: any for bar.red.or, all for bar.red.and, count for
/// bar.red.popc.
enum class Reduction : std::uint8_t { none, any, all, count };

struct Instruction {
  using Run = void (*)(Warp& warp, const Instruction& instruction, Mask lanes);
  enum class Flow : std::uint8_t {
    plain,
    branch,  ///< jumps to the instruction `target`
    exit,
    barrier,     ///< waits for threads in other warps of the block
    collective,  ///< runs once all lanes of its mask have reached it
  };
  Run run = nullptr;
  Flow flow = Flow::plain;
  Class kind = Class::integer;
  bool guarded = false, guard_negated = false;
  std::uint32_t guard = 0;  ///< index of the predicate register of the guard
  Place d, a, b, c;         ///< d: result; a, b, c: operands
  /// A second result, which is a predicate, if there is one.
  Place second = Place::none();
  bool a_negated = false, b_negated = false, c_negated = false;  ///< whether a predicate operand is negated
  std::int32_t target = 0;

  // The following fields are for accesses to memory.
  Space space = Space::generic;
  std::uint8_t bytes = 0, count = 1;  ///< bytes: size of an element; count: number of elements
  bool is_signed = false, strong = false, acquires = false, releases = false;
  bool whole_device = true;  ///< if false, only threads of the same block need to see a strong access or a fence (.cta)
  std::int64_t offset = 0;   ///< number of bytes to add to the address in `a`
  /// Registers of the elements that an access moves. An element without a register (`_` in PTX) is discarded. In a
  /// collective instruction, elements[0] is the mask of the lanes that take part.
  std::array<Place, 4> elements;
  /// Variant of the instruction, such as the kind of an atomic operation. Its meaning depends on the opcode.
  std::uint8_t operation = 0;
  Reduction reduction = Reduction::none;
  bool saturates = false, flushes = false;  ///< for conversions: .sat and .ftz

  std::int32_t line = 0;
  Source source;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::size_t> param_offsets, param_sizes;
  std::size_t param_bytes = 0;
  std::uint32_t predicates = 0;
  /// Sizes in bytes: register_bytes is per warp, local_bytes per thread, and shared_bytes per block.
  std::size_t register_bytes = 0, local_bytes = 0, shared_bytes = 0;
  std::vector<std::byte> constants;  ///< each constant is stored as 32 equal values, one per lane
  const Module* module = nullptr;

  /// Returns a text such as "PTX line 12, machine.cuh:80, called at simulator.cu:30". If the compiler has inlined calls
  /// here, the text names the innermost few of them, one for each source file.
  std::string where(const Instruction& instruction) const;
};

/// Addresses of a module's global variables, by name.
using Symbols = std::map<std::string, std::uint64_t>;

/// Translates a PTX function into a Program. `globals` has the addresses of the module's global variables. Throws
/// std::runtime_error if an instruction is unknown.
std::unique_ptr<Program> decode(const Module& module, const Function& function, const Symbols& globals);

}  // namespace cairn::tests::ptx
