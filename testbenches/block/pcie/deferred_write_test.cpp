// SPDX-License-Identifier: Apache-2.0
// Writes for which the root complex is not ticked: whoever looks at memory, whenever, sees what a tick each would show.
#include <functional>
#include <random>

#include "testbenches/bench/child.h"
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

constexpr std::size_t buffer_bytes = 8 << 10;

/// Has the kernel call a function again and again, `period` apart, which is a multiple of the root complex's cycle:
/// never at one of its edges, where it may come before or after them.
void every(sim::time_ps period, std::function<void()> what) {
  sc_core::sc_spawn_options options;
  options.spawn_method();
  sc_core::sc_spawn(
      [period, what, first = true]() mutable {
        if (!first) what();
        sc_core::next_trigger(sc_core::sc_time::from_value(first ? period + 500 : period));
        first = false;
      },
      sc_core::sc_gen_unique_name("observer"), &options);
}

struct log_of_writes : host::write_watcher {
  explicit log_of_writes(const sim::timebase& t) : base(t) {}
  const sim::timebase& base;
  std::string text;
  void memory_written(std::uint64_t address, std::uint32_t bytes, sim::time_ps at) override {
    text += std::to_string(address) + " " + std::to_string(bytes) + " @" + std::to_string(at) + " told " +
            std::to_string(base.now_ps()) + "\n";
  }
};

enum class watch { none, always, later };

/// Two clients write and read for 30 us.
struct traffic {
  explicit traffic(bool always_tick) : b(made(always_tick)), buffer(b.memory.allocate(buffer_bytes)) {
    std::mt19937 rng(5);
    for (unsigned i = 0; i < 60; ++i) {
      const auto length = static_cast<std::uint32_t>(1 + rng() % (i % 3 == 0 ? 64 : 2500));
      bytes.emplace_back(length, static_cast<std::uint8_t>(i + 1));
      const std::uint64_t at = buffer.address + rng() % (buffer_bytes - length);
      b.clients[i % 2]->queue(i % 5 == 4 ? read_request(at, length, bytes.back().data())
                                         : write_request(at, length, bytes.back().data()));
    }
  }
  static options made(bool always_tick) {
    options o;
    o.always_tick = always_tick;
    return o;
  }
  void run() {
    b.base.run_ahead_until(b.time() + 30'000'000);
    b.run_ns(30'000);
  }
  bench b;
  host::host_memory::buffer buffer;
  std::vector<std::vector<std::uint8_t>> bytes;
};

/// When an observer who looks every `period` sees which bytes; then the counters.
std::string seen_by_looking(watch watched, bool always_tick, sim::time_ps period) {
  traffic t(always_tick);
  log_of_writes log(t.b.base);
  if (watched == watch::always) t.b.memory.watch(t.buffer.address, buffer_bytes, log);
  std::string text;
  std::uint64_t last = 0;
  every(period, [&] {
    std::uint64_t sum = t.b.stat("root.writes");
    for (std::size_t i = 0; i < buffer_bytes; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, t.buffer.pointer + i, sizeof word);
      sum = (sum ^ word) * 0x9e3779b97f4a7c15;
      sum ^= sum >> 29;
    }
    if (sum != last) text += std::to_string(sum) + " @" + std::to_string(sc_core::sc_time_stamp().value()) + "\n";
    last = sum;
  });
  t.run();
  EXPECT_GT(t.b.stat("root.writes"), 150u);
  for (const auto& [name, value] : t.b.stats.all()) text += name + "=" + std::to_string(*value) + "\n";
  for (const auto& c : t.b.clients)
    for (const auto& a : c->answers) text += std::to_string(a.at) + "\n";
  return text;
}

/// What a watcher is told from `from` on.
std::string told(watch watched, sim::time_ps from) {
  traffic t(false);
  log_of_writes log(t.b.base);
  if (watched == watch::always) t.b.memory.watch(t.buffer.address, buffer_bytes, log);
  bool begun = false;
  every(from, [&] {
    if (begun) return;
    begun = true;
    log.text.clear();
    if (watched == watch::later) t.b.memory.watch(t.buffer.address, buffer_bytes, log);
  });
  t.run();
  EXPECT_FALSE(log.text.empty()) << from;
  return log.text;
}

TEST(deferred_write, looking_at_memory_shows_each_write_at_its_time) {
  for (const sim::time_ps period : {1'000u, 4'000u, 50'000u, 1'000'000u}) {
    const auto run = [&](watch w, bool always_tick) {
      return rnic::bench::in_child([&] { return seen_by_looking(w, always_tick, period); });
    };
    const std::string plain = run(watch::none, false);
    EXPECT_EQ(plain, run(watch::always, false)) << period;
    EXPECT_EQ(plain, run(watch::none, true)) << period;
  }
}

TEST(deferred_write, a_watch_is_told_of_what_was_under_way_when_it_began) {
  for (const sim::time_ps from : {700'000u, 1'500'000u, 2'222'000u, 5'000'000u}) {
    const auto run = [&](watch w) { return rnic::bench::in_child([&] { return told(w, from); }); };
    EXPECT_EQ(run(watch::later), run(watch::always)) << from;
  }
}

/// A peer that writes without credits: counted, and nothing else is lost.
TEST(deferred_write, more_writes_than_credits_are_refused) {
  bench b;
  const auto buffer = b.memory.allocate(4096);
  for (unsigned i = 0; i < 300; ++i) {
    payload::tlp_ptr t = b.pool.get();
    t->type = payload::tlp_type::mem_write;
    t->address = buffer.address + i;
    t->length = 1;
    t->data[0] = 1;
    b.root.deliver(std::move(t), b.time() + 1000);
  }
  b.run_ns(2000);
  EXPECT_EQ(b.stat("root.malformed"), 44u);
  EXPECT_EQ(b.stat("root.writes"), 256u);
  EXPECT_EQ(buffer.pointer[255], 1);
  EXPECT_EQ(buffer.pointer[256], 0);
}

}  // namespace
}  // namespace rnic::test
