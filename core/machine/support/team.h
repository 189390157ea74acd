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

/// A Team is a group of threads that together run one piece of work. An algorithm is written once, as a template over
/// the Team, in phases separated by calls of sync(). In cuda/, a Team is a warp or a thread block. On the host,
/// SerialTeam is a Team of one thread that runs the same code, so that the code can be tested without a device. Every
/// Team has
///
///   int rank() const, int size() const   the number of this thread, and the number of threads
///   void sync() const                    returns once all threads have called it and their writes are visible
///   T reduce(T value, Op op) const       combines the threads' values by op, and returns the same result to each. The
///                                        order of combining depends only on size(). T is trivially copyable. Implies
///                                        sync().
///   T scan(T value, T& total) const      returns the sum of the values of lower ranks; sets `total` to the sum of all.
///                                        T is an integer or a plain struct with + and a zero T{}. Implies sync().
///   T* shared<T>() const                 returns the memory that the threads share, as many bytes as the launch asked
///                                        for, uninitialised and aligned to 16 bytes.
///
/// All threads of a team must make the same sequence of calls of sync(), reduce() and scan().
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
