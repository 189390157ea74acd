#pragma once

#include <string>
#include <vector>

namespace cairn::cuda {

/// A library opened at run time, so that the program starts without it and does not pay for its loading before it is
/// needed (cuBLASLt alone costs 60 ms). It stays open to the end of the process: such libraries have threads and exit
/// handlers of their own.
class SharedLibrary {
 public:
  /// Tries the names in turn, first where the loader looks, then in the folder of the toolkit of this build.
  explicit SharedLibrary(const std::vector<std::string>& names);

  /// Empty when the library is open and every symbol asked for was found; else one line.
  const std::string& why_not() const { return why_not_; }

  /// Sets `function` to the symbol of this name.
  template <typename Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name);

  void* library_ = nullptr;
  std::string why_not_;
};

}  // namespace cairn::cuda
