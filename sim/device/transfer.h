#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Conveniences beside a Machine (core/machine/machine.h).
namespace cairn::sim::device {

/// A base, before those that refer to the machine, of what owns it.
template <class Machine>
struct OwnedMachine {
  Machine machine;
};

/// Whole arrays to and from the machine's memory.
template <class T, class Machine>
auto uploaded(Machine& machine, std::span<const T> values) {
  auto array = machine.template array<T>(static_cast<std::int64_t>(values.size()));
  machine.upload(values.data(), array.size(), array.data());
  return array;
}
template <class T, class Machine>
std::vector<T> downloaded(Machine& machine, const T* data, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  machine.download(data, count, values.data());
  return values;
}

}  // namespace cairn::sim::device
