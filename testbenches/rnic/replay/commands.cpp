// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "testbenches/replay/compare.h"
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

namespace {

void add_replay_options(CLI::App& command, replay_options& o) {
  command
      .add_option("capture", o.capture,
                  "Capture: pcap or pcapng, packed by gzip or not, of Ethernet, Linux cooked\n"
                  "or raw IP; - is standard input")
      ->required()
      ->type_name("CAPTURE");
  command
      .add_option("--hold", o.hold,
                  "Address of the host whose place the adapter takes (default: the one that mostly answers)")
      ->type_name("ADDRESS");
  command
      .add_option("--timing", o.timing,
                  "captured: at the times of the capture; fast: as fast as the frames depend on each other")
      ->check(CLI::IsMember({"captured", "fast"}))
      ->capture_default_str();
  command.add_option("--port", o.port, "Port of the adapter that takes the place of the host's")
      ->check(CLI::IsMember({1u, 2u}))
      ->capture_default_str();
  std::string compared = "Does not compare this field; repeatable. Compared are";
  std::vector<std::string> names;
  for (const rnic::replay::compared_field& field : rnic::replay::compared_fields()) {
    names.emplace_back(field.name);
    compared += std::string("\n  ") + field.name + ": " + field.what;
  }
  command.add_option("--ignore", o.ignore, compared)->type_name("FIELD")->take_all()->check(CLI::IsMember(names));
  command
      .add_option(
          "--also", o.also,
          "Second capture of the same run, taken at the other end: what one has and the other lacks was lost in\n"
          "between, and what did not reach the host whose place the adapter takes is not replayed")
      ->type_name("CAPTURE");
  command.add_flag("--ignore-icrc", o.ignore_icrc,
                   "Take frames whose ICRC or IPv4 header checksum is wrong, and make it right");
  command
      .add_option(
          "--expect", o.expect,
          "Exit status 1 if the answers do not agree: all: any difference counts; fatal: those because of which\n"
          "a peer goes on otherwise (kind, verdict, address, length and content of an answer, one that is\n"
          "missing, a NAK too many, failed completions), not how acknowledgements are coalesced, answers to\n"
          "repetitions, repeated requests, MSN and the solicited bit; none: status 0 whatever they are")
      ->check(CLI::IsMember({"all", "fatal", "none"}))
      ->capture_default_str();
  command
      .add_option("--output", o.output,
                  "Where to write the resulting capture, in the time of the first one so that they can be merged;\n"
                  "named .pcapng with a comment on each frame that differs")
      ->type_name("FILE");
}

}  // namespace

void add_replay(command_line& line) {
  CLI::App& command = line.add("replay", "Re-enact a capture with the adapter in the place of one of its hosts");
  auto& o = line.keep(replay_options{});
  add_replay_options(command, o);
  add_common(command, o.common);
  line.on(command, [&o] { return run_replay(o); });
}

}  // namespace rnic::program
