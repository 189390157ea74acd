#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

/// Reads and writes the part of the Protocol Buffers wire format that CP-SAT's models and answers need.
namespace cairn::solvers {

class MessageWriter {
 public:
  void whole(int field, std::int64_t value) {
    tag(field, kVarint);
    varint(static_cast<std::uint64_t>(value));
  }
  void real(int field, double value) {
    tag(field, kFixed64);
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) bytes_.push_back(static_cast<char>(bits & 0xff));
  }
  void bytes(int field, std::string_view value) {
    tag(field, kBytes);
    varint(value.size());
    bytes_.append(value);
  }
  void message(int field, const MessageWriter& value) { bytes(field, value.bytes_); }
  /// Appends a packed repeated field (one tag, followed by all values), or nothing if there are no values.
  template <class Whole>
  void list(int field, std::span<const Whole> values) {
    MessageWriter packed;
    for (const Whole value : values) packed.varint(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    if (!values.empty()) bytes(field, packed.bytes_);
  }
  const std::string& str() const { return bytes_; }

 private:
  enum Kind : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };
  void tag(int field, Kind kind) { varint(static_cast<std::uint64_t>(field) << 3 | kind); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

/// Iterates over the fields of a message. Throws std::runtime_error if the message is malformed.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  /// Reads the next field. Returns false at the end of the message.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field_ = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0:
        number_ = varint();
        break;
      case 1:
        number_ = fixed(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        number_ = fixed(4);
        break;
      default:
        throw std::runtime_error("an engine's answer is malformed");
    }
    return true;
  }
  int field() const { return field_; }
  std::int64_t whole() const { return static_cast<std::int64_t>(number_); }
  double real() const { return std::bit_cast<double>(number_); }
  std::string_view bytes() const { return bytes_; }

  template <class Visit>
  static void for_each_packed(std::string_view bytes, const Visit& visit) {
    MessageReader packed(bytes);
    while (!packed.rest_.empty()) visit(static_cast<std::int64_t>(packed.varint()));
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw std::runtime_error("an engine's answer is cut short");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t fixed(int count) {
    std::uint64_t value = 0;
    const std::string_view taken = take(static_cast<std::uint64_t>(count));
    for (int i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("an engine's answer is malformed");
  }

  std::string_view rest_, bytes_;
  std::uint64_t number_ = 0;
  int field_ = 0;
};

}  // namespace cairn::solvers
