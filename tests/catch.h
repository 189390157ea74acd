#pragma once

// Debian 12 has Catch2 2.13 and newer systems have Catch2 3. The tests use only what both versions provide.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
