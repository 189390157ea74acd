#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "cairn/core/host_device.h"

/// Conveniences beside a Machine (core/machine/support/machine.h).
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

/// An array of at least so many elements, in the memory of `array` if it is long enough; what it held is lost.
template <class Machine, class Array>
auto* room(Machine& machine, Array& array, std::int64_t count) {
  if (array.size() < count) {
    array = {};
    array = machine.template array<std::remove_pointer_t<decltype(array.data())>>(count);
  }
  return array.data();
}

/// To launch: flags[i] says whether predicate(i) holds.
template <class Predicate>
struct Mark {
  static constexpr int kThreads = 1;
  Predicate predicate;
  std::uint8_t* flags;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    flags[i] = predicate(i) ? 1 : 0;
  }
};

}  // namespace cairn::sim::device
