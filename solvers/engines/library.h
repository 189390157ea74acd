#pragma once

#include <string>
#include <vector>

namespace cairn::solvers {

/// A shared library, opened on first use and never closed.
class Library {
 public:
  /// The address of a function, or nullptr if the library has no such function. Converts to any pointer to a function.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  /// Opens the first library that is found under one of the file names `names`. Looks first in the folder that the
  /// environment variable CAIRN_ENGINES names or, if it is not set, in the folder where scripts/install_engines.sh puts
  /// libraries. Looks afterwards among the system's libraries. If no library can be opened, missing() says that
  /// `engine` is not installed.
  Library(std::string engine, const std::vector<std::string>& names);

  /// Returns one line that says why the library cannot be used and how to install it, or an empty text if it can be
  /// used.
  const std::string& missing() const { return missing_; }
  /// Finds a function of the library by its name. If the library lacks it, missing() names the function.
  Symbol find(const char* function);

 private:
  std::string engine_, missing_;
  void* handle_ = nullptr;
};

}  // namespace cairn::solvers
