#pragma once

#include <string>

namespace cairn::solvers {

struct KeyTree;
struct KeyOrderOptions;
struct KeyOrdersFound;
struct PumpkinProblem;
struct PumpkinOptions;
struct PumpkinAnswer;

/// A device such as a GPU. It has one function for each search of solvers/order/device/ that can run on a device. The
/// answers equal those of the host; only the time differs. Not thread-safe.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::string device() const = 0;  ///< human-readable name of the device

  /// Runs solve_pumpkin() on the device. Uses at most the memory that `options` allow, and never more than the device's
  /// free memory. Throws DeviceError if the device fails.
  virtual PumpkinAnswer pumpkin(const PumpkinProblem& problem, const PumpkinOptions& options) = 0;
  /// Runs search_key_orders() on the device. Throws DeviceError if the device fails.
  virtual KeyOrdersFound key_orders(const KeyTree& tree, const KeyOrderOptions& options) = 0;
};

}  // namespace cairn::solvers
