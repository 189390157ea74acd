#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "cairn/core/host_device.h"

/// This file has helpers for code that uses a Machine (core/machine/support/machine.h).
namespace cairn::sim::device {

/// A base class that owns a machine. In a list of base classes, it must come before bases that refer to the machine,
/// because bases are constructed in order.
template <class Machine>
struct OwnedMachine {
  Machine machine;
};

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

/// Returns a pointer to room for at least `count` elements in `array`. If the array is too short, it is reallocated,
/// and its contents are lost.
template <class Machine, class Array>
auto* room(Machine& machine, Array& array, std::int64_t count) {
  if (array.size() < count) {
    array = {};
    array = machine.template array<std::remove_pointer_t<decltype(array.data())>>(count);
  }
  return array.data();
}

/// A functor for Machine::launch that sets flags[i] to whether predicate(i) holds.
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
