#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// This file holds a parsed text of PTX, NVIDIA's assembly language. Operands are still names. Only the decoder
/// (code/program.h) gives registers a place in memory and opcodes their code.
namespace cairn::tests::ptx {

enum class Space : std::uint8_t { generic, global, shared, local, param, constant };

/// How many bits a register has for each lane. A lane is one of the 32 threads of a warp.
enum class Slot : std::uint8_t {
  predicate,  ///< 1 bit
  word,       ///< 32 bits, also for types of 8 and 16 bits
  pair,       ///< 64 bits
};

struct Register {
  Slot slot = Slot::word;
  std::int32_t index = 0;  ///< index of the register among the function's registers of the same Slot
};

struct Operand {
  enum class Kind : std::uint8_t {
    name,     ///< a register, a variable, a label, or a special register such as %tid.x
    number,   ///< a constant, whose value is `bits`
    address,  ///< [name + offset], or [offset] if the name is empty
    list,     ///< {a, b, ...}
    pair,     ///< a|b, for an instruction with two results
    sink,     ///< _, for a result that is discarded
  };
  Kind kind = Kind::name;
  std::string name;
  bool negated = false;     ///< whether the operand is written as !name
  std::uint64_t bits = 0;   ///< value of a number; for a real number, its bits as written in the text
  std::int64_t offset = 0;  ///< offset of an address, in bytes
  std::vector<Operand> items;
};

/// A line of a source file. The compiler names it by the directive .loc.
struct Source {
  std::int32_t file = 0, line = 0;
  /// If the compiler has inlined a function here, the line of the call, or else nullptr.
  const Source* caller = nullptr;
};

struct Statement {
  std::string opcode;                  ///< such as "ld"
  std::vector<std::string> modifiers;  ///< such as "global" and "u64"
  std::vector<Operand> operands;
  std::string guard;  ///< predicate register that decides which lanes run the statement, or empty
  bool guard_negated = false;
  std::int32_t line = 0;  ///< line of the PTX text, counted from 1
  Source source;

  bool has(std::string_view modifier) const;
  std::string text() const;  ///< returns the opcode with its modifiers
};

struct Variable {
  std::string name;
  Space space = Space::global;
  std::size_t alignment = 1, bytes = 0;
  std::vector<std::byte> initial;  ///< values of the first bytes; all further bytes are 0
};

struct Function {
  std::string name;
  std::vector<Variable> params;
  std::vector<Variable> variables;  ///< variables in shared memory and in local memory
  /// Registers by name. The parser renames registers of inner scopes, so that all names are unique.
  std::map<std::string, Register> registers;
  std::int32_t slots[3] = {0, 0, 0};  ///< number of registers of each Slot
  std::vector<Statement> statements;
  std::map<std::string, std::int32_t> labels;  ///< for each label, the index of the statement that follows it
};

struct Module {
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::deque<Source> callers;                 ///< lines of calls that the compiler has inlined
  std::map<std::int32_t, std::string> files;  ///< paths of the source files, by the numbers that .loc uses
};

/// Parses the text of a module. If the parser does not know a part of the text, throws std::runtime_error, which names
/// the line.
Module parse(std::string_view text);

}  // namespace cairn::tests::ptx
