// SPDX-License-Identifier: Apache-2.0
// A Kanata log line by line, as docs/kanata-log-format.md of Konata says: C= and C are cycles, I a new instruction (its
// number in the file, in the simulator, thread), L a label, S and E the begin and the end of a stage in a lane, R the
// end (number among those that retired; 1: flushed).
#include "testbenches/bench/trace/konata_writer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "testbenches/bench/trace/message_sink.h"

namespace rnic::bench::test {
namespace {

sim::followed_request message(sim::time_ps start, std::vector<sim::span::mark> marks, bool polled = true,
                              std::uint8_t status = 0) {
  sim::followed_request r;
  r.polled = polled;
  r.status = status;
  r.path.start = start;
  r.path.marks = std::move(marks);
  return r;
}

TEST(KonataWriter, IsALogOfVersionFour) {
  const std::string path = ::testing::TempDir() + "rnic_konata_writer.log";
  constexpr sim::wait none = sim::wait::none, software = sim::wait::software;
  {
    konata_writer w(path, 1'000'000);  // a cycle is a nanosecond
    w.set_origin(3'000);
    w.add(message(5'100, {{"a", "post", software, 6'100}, {"a", "dma", none, 8'900}}), 7, 2, "rpc write");
    w.add(message(6'500, {{"a", "post", none, 7'000}}, false), 9, 0, "without an end");
    w.write_before(6'500);
    w.add(message(4'000, {{"a", message_sink_if::arrived, software, 9'100}, {"a", "commit", none, 10'500}}), 12, 0,
          "waited for its post");
    w.add(message(10'000, {{"a", "post", none, 11'999}}, true, 12), 8, 1, "failed");
    w.add(message(12'000, {{"a", "skipped", none, 12'000}, {"a", "post", none, 12'001}}), 13, 0, "short");
    w.add(message(12'000, {}), 14, 0, "of no stage");
    w.close();
  }
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::remove(path.c_str());
  EXPECT_EQ(text,
            "Kanata\t0004\n"
            "C=\t2\n"
            "I\t0\t7\t2\nL\t0\t0\trpc write\nS\t0\t0\tpost\nS\t0\t1\tsoftware\n"
            "C\t1\n"
            "E\t0\t0\tpost\nE\t0\t1\tsoftware\nS\t0\t0\tdma\n"
            "I\t1\t9\t0\nL\t1\t0\twithout an end\nS\t1\t0\tpost\n"
            "C\t1\n"
            "E\t1\t0\tpost\nR\t1\t0\t1\n"
            "C\t1\n"
            "E\t0\t0\tdma\nR\t0\t0\t0\n"
            "C\t1\n"
            "I\t2\t12\t0\nL\t2\t0\twaited for its post\nS\t2\t0\tcommit\n"
            "C\t1\n"
            "E\t2\t0\tcommit\nR\t2\t1\t0\n"
            "I\t3\t8\t1\nL\t3\t0\tfailed\nS\t3\t0\tpost\n"
            "C\t1\n"
            "E\t3\t0\tpost\nR\t3\t2\t1\n"
            "C\t1\n"
            "I\t4\t13\t0\nL\t4\t0\tshort\nS\t4\t0\tpost\nE\t4\t0\tpost\nR\t4\t2\t0\n");
}

// Hours of a clock whose cycle is no whole number of picoseconds: 427 MHz.
TEST(KonataWriter, CyclesStayExact) {
  const std::string path = ::testing::TempDir() + "rnic_konata_cycles.log";
  {
    konata_writer w(path, 427'000);
    const sim::time_ps hour = 3'600'000'000'000'000;
    w.add(message(hour - 1, {{"a", "post", sim::wait::none, hour}}), 1, 0, "late");
    w.close();
  }
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  std::getline(in, line);
  EXPECT_EQ(line, "C=\t1537199999999");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace rnic::bench::test
