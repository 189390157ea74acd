#include <cstdlib>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

namespace {
// Turns off the cache of schedules. Otherwise, schedules that earlier tests have stored could change a test's result.
[[maybe_unused]] const int kWithoutCache = setenv("CAIRN_CACHE", "/dev/null", 1);
}  // namespace
