#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Whole arrays to and from the memory of a Machine (sim/machine.h).
namespace cairn::sim::device {

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
