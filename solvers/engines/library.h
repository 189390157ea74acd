#pragma once

#include <string>
#include <vector>

namespace cairn::solvers {

/// A shared library, opened on first use and never closed.
class Library {
 public:
  /// Opens the library. Looks for each file name of `names` in the folder that CAIRN_ENGINES names, in the folder where
  /// scripts/install_engines.sh puts libraries, and among the system's libraries. If none can be opened, missing() says
  /// so.
  Library(std::string engine, const std::vector<std::string>& names);

  /// Returns one line that says why the library cannot be used and how to fix that. The line is empty if the library
  /// can be used.
  const std::string& missing() const { return missing_; }
  /// Sets `function` to the library's function `name`. If the library lacks the function, sets `function` to nullptr,
  /// and missing() names the function.
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
