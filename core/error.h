#pragma once

#include <stdexcept>
#include <string>

namespace cairn::core {

/// Every failure Cairn reports on purpose is an Error whose what() is for a person: what, where, how to mend, in one
/// line, or a line of what there is not and lines of why and of what helps.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The input (a file, an option, a graph, a schedule) is not acceptable. The command exits with 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// A stop flag (Ctrl-C) or a limit of time ended what has no result before its end. The command exits with 130.
class InterruptedError : public Error {
 public:
  using Error::Error;
};

/// The machine cannot do it: no device, or not enough memory. The command exits with 5.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// What was asked for is more memory than there is.
class MemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Cairn failed one of its own checks: a defect of Cairn, not of its input. The command exits with 1.
class DefectError : public Error {
 public:
  using Error::Error;
};

}  // namespace cairn::core
