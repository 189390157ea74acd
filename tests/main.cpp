#include <cstdlib>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

namespace {
// With schedules that earlier commands have stored, the result of a test would depend on other tests.
[[maybe_unused]] const int kWithoutCache = setenv("CAIRN_CACHE", "/dev/null", 1);
}  // namespace
