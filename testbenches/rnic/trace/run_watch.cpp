// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/trace/run_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "host_driver/hosts/system_capture.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/trace/run_wave.h"

namespace rnic::program {

void check_trace(const common_options& common, const trace_options& trace, const std::vector<std::string>& names) {
  if (trace.file.empty() && trace.konata.empty()) {
    if (!trace.flows.empty()) throw usage_error("--flow: needs --trace FILE or --konata FILE");
    if (trace.wave.empty() && (trace.from_us != 0 || trace.until_us != 0))
      throw usage_error("--from, --until: need --trace FILE, --konata FILE or --wave FILE");
  }
  check_wave(common, trace);
  if (trace.until_us != 0 && trace.until_us <= trace.from_us)
    throw usage_error(fmt::format("--until: {} is not above --from {}", trace.until_us, trace.from_us));
  for (const std::string& f : trace.flows)
    if (std::find(names.begin(), names.end(), f) == names.end())
      throw usage_error(fmt::format("--flow: there is no {}, expected one of {}", f, fmt::join(names, ", ")));
  check_writable(common, trace.file);
  check_writable(common, trace.konata);
}

void print_trace(const nlohmann::json& trace) {
  fmt::print("\ntrace: {} messages ({} without a completion, {} not followed)", trace["messages"].get<std::uint64_t>(),
             trace["unfinished"].get<std::uint64_t>(), trace["not_followed"].get<std::uint64_t>());
  for (const char* file : {"file", "konata"})
    if (!trace[file].get<std::string>().empty()) fmt::print(" in {}", trace[file].get<std::string>());
  fmt::print("\n");
}

bool run_watch::is_wanted(const common_options& common, const trace_options& trace) {
  return !trace.file.empty() || !trace.konata.empty() || hosts::system_capture::has_all_ports(common.pcap_file);
}

run_watch::run_watch(const bench::watched_system& system, const trace_options& trace, const std::string& title)
    : system_(system), options_(trace) {
  from_ = static_cast<sim::time_ps>(std::llround(trace.from_us * sim::ps_per_us));
  if (trace.until_us != 0) until_ = static_cast<sim::time_ps>(std::llround(trace.until_us * sim::ps_per_us));
  if (trace.file.empty() && trace.konata.empty()) return;
  trace_ = std::make_unique<bench::network_trace>(system,
                                                  bench::trace_config{trace.file, trace.konata, title, from_, until_});
}

run_watch::~run_watch() {
  if (system_.capture != nullptr) system_.capture->set_notes(nullptr);
}

void run_watch::comment(tlm::frame_notes_if& notes) {
  if (system_.capture != nullptr) system_.capture->set_notes(&notes);
}

void run_watch::follow(const std::string& others) {
  bench::message_choice which;
  which.from = from_;
  which.until = until_;
  which.flows = options_.flows;
  which.others = others;
  follower_ = std::make_unique<bench::message_follower>(system_, which, trace_.get());
  comment(*follower_);
}

bench::single_messages* run_watch::follow_singly(const std::vector<std::string>& flows) {
  singles_ = std::make_unique<bench::single_messages>(system_, bench::single_messages::config{from_, until_, flows},
                                                      trace_.get());
  comment(*singles_);
  return singles_.get();
}

void run_watch::begin(sim::time_ps now) {
  if (trace_) trace_->begin(now);
  if (follower_) follower_->begin(now);
  if (singles_) singles_->begin(now);
}

nlohmann::json run_watch::finish() {
  if (follower_) follower_->finish();
  if (singles_) singles_->finish();
  if (!trace_) return {};
  const bench::trace_counts counts = trace_->finish();
  return {{"file", options_.file},
          {"konata", options_.konata},
          {"messages", counts.messages},
          {"unfinished", counts.unfinished},
          {"not_followed", follower_ ? follower_->not_followed() : 0},
          {"late_marks", follower_ ? follower_->late_marks() : 0},
          {"events", counts.events}};
}

std::unique_ptr<run_watch> watch_of(hosts::network& network, const common_options& common, const trace_options& trace,
                                    const std::string& title) {
  if (!run_watch::is_wanted(common, trace)) return nullptr;
  auto watch = std::make_unique<run_watch>(bench::watched(network), trace, title);
  network.follow();
  watch->follow();
  return watch;
}

}  // namespace rnic::program
