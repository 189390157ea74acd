#pragma once

// Debian 12 has Catch2 2.13, newer systems have Catch2 3; the tests use what both share.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
