#pragma once

#include <string_view>

/// The files in models/data/, which cmake/embed_data.cmake turns into string literals. So the command and the library
/// find them wherever they are installed.
namespace cairn::models::embedded {

std::string_view digits();
std::string_view shakespeare();

}  // namespace cairn::models::embedded
