#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// PTX as text says it: statements with names, before registers have places and opcodes have code.
namespace cairn::tests::ptx {

enum class Space : std::uint8_t { generic, global, shared, local, param, constant };

/// Width of a register's slot in a warp's register file.
enum class Slot : std::uint8_t {
  predicate,  ///< one bit a lane
  word,       ///< 32 bits a lane, also for types of 8 and 16 bits
  pair,       ///< 64 bits a lane
};

struct Register {
  Slot slot = Slot::word;
  std::int32_t index = 0;  ///< among the function's registers of that slot
};

struct Operand {
  enum class Kind : std::uint8_t {
    name,     ///< a register, a variable, a label, or a special register as %tid.x
    number,   ///< a constant: `bits`
    address,  ///< [name + offset], or [offset] if the name is empty
    list,     ///< {a, b, ..}
    pair,     ///< a|b
    sink,     ///< _
  };
  Kind kind = Kind::name;
  std::string name;
  bool negated = false;     ///< !name
  std::uint64_t bits = 0;   ///< of a number; a real number's bits as written
  std::int64_t offset = 0;  ///< of an address, in bytes
  std::vector<Operand> items;
};

/// Place in the source file that the compiler noted (.loc).
struct Source {
  std::int32_t file = 0, line = 0;
};

struct Statement {
  std::string opcode;                  ///< as "ld"
  std::vector<std::string> modifiers;  ///< as "global", "u64"
  std::vector<Operand> operands;
  std::string guard;  ///< predicate register; empty: none
  bool guard_negated = false;
  std::int32_t line = 0;  ///< in the PTX text, counted from 1
  Source source;

  bool has(std::string_view modifier) const;
  std::string text() const;  ///< opcode with its modifiers
};

struct Variable {
  std::string name;
  Space space = Space::global;
  std::size_t alignment = 1, bytes = 0;
  std::vector<std::byte> initial;  ///< first bytes; the rest is zero
};

struct Function {
  std::string name;
  std::vector<Variable> params;
  std::vector<Variable> variables;            ///< .shared and .local ones
  std::map<std::string, Register> registers;  ///< those of inner scopes have names of their own
  std::int32_t slots[3] = {0, 0, 0};          ///< number of registers by Slot
  std::vector<Statement> statements;
  std::map<std::string, std::int32_t> labels;  ///< index of the statement behind each label
};

struct Module {
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::map<std::int32_t, std::string> files;  ///< source files by number
};

/// Parses the text of a module. Throws std::runtime_error, which names the line, at what it does not know.
Module parse(std::string_view text);

}  // namespace cairn::tests::ptx
