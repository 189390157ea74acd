#pragma once

#include <string>

namespace cairn::solvers {

struct KeyTree;
struct KeyOrderOptions;
struct KeyOrdersFound;
struct PumpkinProblem;
struct PumpkinOptions;
struct PumpkinAnswer;

/// A device as solvers see it, with one function for each search of solvers/order/device/ that a device can take over.
/// Gives the same answers as the host, only sooner. Not thread-safe.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::string device() const = 0;  ///< name of the device, in words

  /// Runs solve_pumpkin() on the device, within its free memory if that is less than `options` allow. Throws
  /// DeviceError if the device fails.
  virtual PumpkinAnswer pumpkin(const PumpkinProblem& problem, const PumpkinOptions& options) = 0;
  /// Runs search_key_orders() on the device. Throws DeviceError if the device fails.
  virtual KeyOrdersFound key_orders(const KeyTree& tree, const KeyOrderOptions& options) = 0;
};

}  // namespace cairn::solvers
