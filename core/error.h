#pragma once

#include <stdexcept>
#include <string>

namespace cairn::core {

/// A failure that Cairn reports on purpose. Its what() is for people: either one line that says what is wrong, where,
/// and how to mend it; or a line that says what cannot be had, followed by lines with the reasons and with what helps.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The input (a file, an option, a graph, a schedule) is not acceptable. The command exits with 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// Work that has no result before its end was ended by a stop flag (Ctrl-C) or a time limit. The command exits with
/// 130.
class InterruptedError : public Error {
 public:
  using Error::Error;
};

/// The machine cannot do the work, because there is no device or not enough memory. The command exits with 5.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The work needs more memory than there is.
class MemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Cairn failed one of its own checks. This is a defect of Cairn, not of its input. The command exits with 1.
class DefectError : public Error {
 public:
  using Error::Error;
};

}  // namespace cairn::core
