// Tests that reading the lines of a schedule file can be interrupted.
#include "cairn/pipeline/internal/schedule_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "cairn/tests/catch.h"
#include "cairn/tests/support/folder.h"

namespace cairn::tests::schedule_lines_test {

TEST_CASE("a line that an interrupt has cut is dropped") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::atomic<bool> stop = false;
  int file = -1;
  std::thread writer([&] {
    constexpr std::string_view text = "0 1 2\n0 1";  // the rest of the second line never comes
    file = ::open(pipe.c_str(), O_WRONLY);
    stop = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  });
  pipeline::ScheduleLines lines(pipe, 100, &stop);
  pipeline::LineBatch batch;
  while (lines.next(batch)) CHECK(batch.text == "0 1 2\n");
  writer.join();
  ::close(file);
}

}  // namespace cairn::tests::schedule_lines_test
