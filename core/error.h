#pragma once

#include <stdexcept>

namespace cairn::core {

/// Reports a failure that Cairn has detected. what() returns text for people. For most errors, the text is one line
/// that says what is wrong, where it is wrong, and how to fix it. If a request cannot be met, the first line says so,
/// and further lines give the reasons and say what would help.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The input is not acceptable. Input is a file, an option, a graph or a schedule. The command exits with 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// A stop flag (Ctrl-C) or a time limit ended work that has no partial result. The command exits with 130.
class InterruptedError : public Error {
 public:
  using Error::Error;
};

/// The work cannot be done on this machine, because it has no suitable device or not enough memory. The command exits
/// with 5.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The work needs more memory than the machine has.
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
