#pragma once

#include <cstddef>

#include "cairn/core/host_device.h"

namespace cairn::core {

/// Operators for Team::reduce().
struct Sum {
  template <class T>
  CAIRN_HD T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  CAIRN_HD T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Or {
  template <class T>
  CAIRN_HD T operator()(T a, T b) const {
    return a | b;
  }
};

/// A Team is a group of threads that runs one piece of work together. An algorithm is written once, as a template over
/// the Team, in phases between syncs. In cuda/ a warp or a thread block is a Team; on the host a Team of one runs the
/// same code, so that it can be tested without a device. Every Team has
///
///   int rank() const, int size() const   number of this thread, and of all threads
///   void sync() const                    returns once all threads have called it and their writes are visible
///   T reduce(T value, Op op) const       op over all threads' values, with the same result for each; the order depends
///                                        on the size alone. T is trivially copyable. Implies sync().
///   T scan(T value, T& total) const      sum of the values of the ranks before this one; `total` becomes that of all.
///                                        T is an integer or a plain struct with + and a zero T{}. Implies sync().
///   T* shared<T>() const                 memory shared by the threads, as many bytes as the launch asked for;
///                                        undefined at first. Aligned to 16 bytes.
///
/// All threads of a team must reach the same syncs and reductions.
class SerialTeam {
 public:
  CAIRN_HD explicit SerialTeam(std::byte* shared = nullptr) : shared_(shared) {}

  CAIRN_HD static constexpr int rank() { return 0; }
  CAIRN_HD static constexpr int size() { return 1; }
  CAIRN_HD void sync() const {}
  template <class T, class Op>
  CAIRN_HD T reduce(T value, const Op&) const {
    return value;
  }
  template <class T>
  CAIRN_HD T scan(T value, T& total) const {
    total = value;
    return T{};
  }
  template <class T>
  CAIRN_HD T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }

 private:
  std::byte* shared_;
};

}  // namespace cairn::core
