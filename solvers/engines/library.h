#pragma once

#include <string>
#include <vector>

namespace cairn::solvers {

/// A shared library, opened on first use and never closed.
class Library {
 public:
  /// Opens the first library that is found under one of the file names `names`. Looks first in the folder that the
  /// environment variable CAIRN_ENGINES names or, if it is not set, in the folder where scripts/install_engines.sh puts
  /// libraries. Looks afterwards among the system's libraries. If no library can be opened, missing() says so and calls
  /// it by the name `engine`.
  Library(std::string engine, const std::vector<std::string>& names);

  /// Returns one line that says why the library cannot be used and how to install it, or an empty text if it can be
  /// used.
  const std::string& missing() const { return missing_; }
  /// Sets `function` to the address of the library's function `name`. If the library lacks this function, sets
  /// `function` to nullptr, and missing() names the function.
  template <class Function>
  void load(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* function);

  std::string engine_, missing_;
  void* handle_ = nullptr;
};

}  // namespace cairn::solvers
