#pragma once

#include <string_view>

/// These functions return the files in models/data/. cmake/embed_data.cmake turns the files into string literals, so
/// that the command and the library have the data wherever they are installed.
namespace cairn::models::embedded {

std::string_view digits();
std::string_view shakespeare();

}  // namespace cairn::models::embedded
