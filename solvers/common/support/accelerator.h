#pragma once

#include <string>

namespace cairn::solvers {

struct KeyTree;
struct KeyOrderOptions;
struct KeyOrdersFound;
struct PumpkinProblem;
struct PumpkinOptions;
struct PumpkinAnswer;

/// A device such as a GPU, with one function for each search of solvers/order/device/ that it can run. Each function
/// returns the same answer on every device and on the host. Not thread-safe.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::string device() const = 0;  ///< human-readable name of the device

  /// Runs solve_pumpkin() on the device. Uses no more memory than `options` allow, and no more than is free on the
  /// device. Throws DeviceError if the device fails.
  virtual PumpkinAnswer pumpkin(const PumpkinProblem& problem, const PumpkinOptions& options) = 0;
  /// Runs search_key_orders() on the device. Throws DeviceError if the device fails.
  virtual KeyOrdersFound key_orders(const KeyTree& tree, const KeyOrderOptions& options) = 0;
};

}  // namespace cairn::solvers
