// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"
#include "testbenches/rnic/run/short_form.h"

namespace rnic::program {

namespace {

void add_soak(CLI::App& command, soak_options& o) {
  command.add_option("--messages", o.messages, "Messages in all, both directions")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command.add_option("--qps", o.qps, "Connections; both ends send on each")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command.add_option("--depth", o.depth, "Messages under way per connection and direction")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command.add_option("--largest", o.largest, "Largest message in bytes; sizes are spread evenly over their logarithms")
      ->check(CLI::Range(0u, 1u << 20))
      ->capture_default_str();
  command
      .add_option("--verbs", o.verbs, "Verbs to mix (default all): send, send_imm, write, write_imm, read, cas, fadd")
      ->delimiter(',')
      ->check(CLI::IsMember({"send", "send_imm", "write", "write_imm", "read", "cas", "fadd"}));
  command.add_option("--ack-timeout", o.ack_timeout, "Transport timer: 4.096 us * 2^n")
      ->check(CLI::Range(1u, 31u))
      ->capture_default_str();
  command.add_option("--retries", o.retries, "Retransmissions without progress before a queue pair fails, 7: 64")
      ->check(CLI::Range(0u, 7u))
      ->capture_default_str();
  command.add_option("--rnr-retries", o.rnr_retries, "The same for a receiver that is not ready, 7: for ever")
      ->check(CLI::Range(0u, 7u))
      ->capture_default_str();
  add_packets(command, o.traffic);
  add_topology(command, o.traffic);
  add_port(command, o.traffic, "connections are on them in turn");
  add_bond(command, o.common);
}

/// With --print the command shows its file, without it `run` does what it says and has the file in its results.
template <class Options>
void do_or_print(command_line& line, CLI::App& command, Options& o, int (*run)(const Options&)) {
  command.add_flag("--print", o.print, "Show the file of `rnic run` that does the same, and do nothing else");
  line.on(command, [&command, &o, run] {
    o.file = file_of(command);
    o.traffic.given = given(command);
    if (!o.print) return run(o);
    fmt::print("{}", o.file);
    return 0;
  });
}

void add_latency(command_line& line) {
  CLI::App& command =
      line.add("latency", "Half round trip (READ: round trip) per message size, and where the time went");
  auto& o = line.keep(latency_options{});
  add_traffic(command, o.traffic);
  add_topology(command, o.traffic);
  add_port(command, o.traffic, "messages take the first one");
  add_bond(command, o.common);
  command.add_option("--iterations", o.iterations, "Measured messages per size")
      ->check(CLI::Range(1u, 10000000u))
      ->capture_default_str();
  command
      .add_option("--warm-up", o.warm_up,
                  "Messages per size before the measured ones; 0: the first one finds the caches on chip empty")
      ->check(CLI::Range(0u, 10000000u))
      ->capture_default_str();
  add_faults(command, o.faults, false);
  add_trace(command, o.trace, false);
  add_common(command, o.common);
  do_or_print(line, command, o, run_latency);
}

void add_bandwidth(command_line& line) {
  CLI::App& command = line.add("bandwidth", "Message rate and goodput per message size, and what limits them");
  auto& o = line.keep(bandwidth_options{});
  o.traffic.inline_bytes = 0;  // as perftest's bandwidth tests
  add_traffic(command, o.traffic);
  add_topology(command, o.traffic);
  add_port(command, o.traffic, "queue pairs are on them in turn");
  add_bond(command, o.common);
  command.add_option("--depth", o.depth, "Messages under way per queue pair")
      ->check(CLI::Range(1u, 8192u))
      ->capture_default_str();
  command
      .add_option("--rx-depth", o.receive_depth,
                  "Receives posted per queue pair, of verbs that take one; when there is none, rc and xrc try again\n"
                  "after 0.64 ms, uc and ud lose the message")
      ->check(CLI::Range(1u, 8192u))
      ->capture_default_str();
  command.add_option("--outs", o.reads, "READs and atomics under way per queue pair, a power of two")
      ->check(CLI::IsMember({1u, 2u, 4u, 8u, 16u}))
      ->capture_default_str();
  command
      .add_option(
          "--cq-mod", o.signal_every,
          "Messages of a queue pair for which there is one completion, at most --depth; 0: of half a window, at\n"
          "most 100")
      ->check(CLI::Range(0u, 8192u))
      ->capture_default_str();
  command.add_option("--qps", o.qps, "Queue pairs")->check(CLI::Range(1u, 65536u))->capture_default_str();
  command
      .add_option("--messages", o.messages,
                  "Messages per size, over all queue pairs of a direction; 0: 1000 for each 128 that may be under way\n"
                  "(--qps times --depth), until 256 MiB have gone, but 1000 (UC and UD: 10000, or 16 MiB) to 4000000")
      ->check(CLI::Range(0u, 100000000u))
      ->capture_default_str();
  command.add_flag("--bidirectional", o.bidirectional, "Both hosts send");
  add_faults(command, o.faults, false);
  add_trace(command, o.trace, false);
  add_common(command, o.common);
  do_or_print(line, command, o, run_bandwidth);
}

}  // namespace

void add_measurements(command_line& line) {
  add_latency(line);
  add_bandwidth(line);
  CLI::App& command = line.add(
      "soak", "Mixed verbs and sizes over many queue pairs on a bad cable; every byte, order and count is checked");
  auto& o = line.keep(soak_options{});
  add_soak(command, o);
  add_faults(command, o.faults, true);
  add_common(command, o.common);
  line.on(command, [&command, &o] {
    o.traffic.given = given(command);
    return run_soak(o);
  });
}

}  // namespace rnic::program
