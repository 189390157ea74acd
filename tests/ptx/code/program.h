#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/tests/ptx/text/module.h"

/// A function ready to run: registers have places, opcodes have code, labels have indices.
namespace cairn::tests::ptx {

class Warp;

inline constexpr int kLanes = 32;
using Mask = std::uint32_t;  ///< one bit a lane
inline constexpr Mask kAllLanes = ~Mask{0};

/// Place of an operand: 32 slots of a register, of a constant, or of a special register.
struct Place {
  enum class Bank : std::uint8_t { registers, constants, specials };
  Bank bank = Bank::registers;
  Slot slot = Slot::word;
  std::uint32_t offset = 0;  ///< bytes in the bank; of a predicate in registers: its index

  static Place none() { return {Bank::constants, Slot::word, ~0U}; }
  bool given() const { return offset != ~0U; }
};

/// Registers that hold a thread's or a block's place, a word a lane.
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

/// What an instruction counts as.
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

struct Instruction {
  using Run = void (*)(Warp& warp, const Instruction& instruction, Mask lanes);
  enum class Flow : std::uint8_t {
    plain,
    branch,  ///< to `target`
    exit,
    barrier,     ///< of a block
    collective,  ///< runs once all lanes that its mask names have come to it
  };
  Run run = nullptr;
  Flow flow = Flow::plain;
  Class kind = Class::integer;
  bool guarded = false, guard_negated = false;
  std::uint32_t guard = 0;                                       ///< index of a predicate
  Place d, a, b, c;                                              ///< result and operands
  Place second = Place::none();                                  ///< a second result, a predicate
  bool a_negated = false, b_negated = false, c_negated = false;  ///< of predicates
  std::int32_t target = 0;

  // Of accesses to memory:
  Space space = Space::generic;
  std::uint8_t bytes = 0, count = 1;  ///< bytes of an element; elements
  bool is_signed = false, strong = false, acquires = false, releases = false;
  std::int64_t offset = 0;        ///< added to the address in `a`
  std::array<Place, 4> elements;  ///< registers of the elements; not given: dropped
  std::uint8_t operation = 0;     ///< of an atomic, a barrier, a shuffle, a vote; meaning is the opcode's own

  std::int32_t line = 0;
  Source source;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::size_t> param_offsets, param_sizes;
  std::size_t param_bytes = 0;
  std::uint32_t predicates = 0;
  std::size_t register_bytes = 0, local_bytes = 0, shared_bytes = 0;  ///< of a warp; of a thread; of a block
  std::vector<std::byte> constants;                                   ///< 32 equal slots for each constant operand
  const Module* module = nullptr;

  std::string where(const Instruction& instruction) const;  ///< "PTX line 12, simulator.cu:30"
};

/// Addresses of a module's global variables, by name.
using Symbols = std::map<std::string, std::uint64_t>;

/// Translates a function. Throws std::runtime_error at an instruction that it does not know.
std::unique_ptr<Program> decode(const Module& module, const Function& function, const Symbols& globals);

}  // namespace cairn::tests::ptx
