#pragma once

#include <string>
#include <vector>

namespace cairn::solvers {

/// A shared library, opened on first use and never closed.
class Library {
 public:
  /// Looks for each of the file names in the folder that CAIRN_ENGINES names, in the folder where
  /// scripts/install_engines.sh puts libraries, and among the system's libraries.
  Library(std::string engine, const std::vector<std::string>& names);

  /// Describes in one line why the library cannot be used and how to fix that; empty if it can be used.
  const std::string& missing() const { return missing_; }
  /// Sets `function` to a function of the library. If the library lacks the function, sets nullptr, and missing() then
  /// says so.
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
