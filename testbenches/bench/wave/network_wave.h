// SPDX-License-Identifier: Apache-2.0
// A waveform of channels, memories, engines, clocks and RTL of a system.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/hosts/node.h"
#include "testbenches/bench/trace/watched_system.h"
#include "testbenches/bench/wave/channel_wave.h"
#include "testbenches/bench/wave/engine_wave.h"
#include "testbenches/bench/wave/memory_wave.h"
#include "testbenches/bench/wave/wave_changes.h"
#include "testbenches/bench/wave/wave_file.h"
#include "testbenches/bench/wave/wave_merge.h"

namespace rnic::bench {

struct wave_config {
  std::string file;  ///< FST
  /// Patterns of names (is_name_in): a channel, or a block at one of its ends; a memory, an engine, a pipeline, or its
  /// block; or a block of RTL. Empty: all of the first two hosts.
  std::vector<std::string> of;
  sim::time_ps from = 0, until = ~sim::time_ps{0};  ///< since all hosts are ready, which is time 0 of the file
};

struct wave_counts {
  std::size_t channels = 0, memories = 0, engines = 0, pipelines = 0, clocks = 0, rtl_blocks = 0, signals = 0;
  std::uint64_t changes = 0;  ///< in the file
  /// What is shown has been used from begin() to finish(), by its own counters (sim::for_each_use, and `.entered` of
  /// pipelines): what a reader finds in a file without a window. What is 0 is not there.
  std::map<std::string, std::uint64_t> use;
};

/// Shows from begin() to finish() what is chosen, and changes nothing else. A block of RTL writes its own waveform into
/// a file of its own beside `file`, which becomes a part of it at the end.
class network_wave {
 public:
  /// Before the system runs. Throws usage_error for a pattern without a match and for a file that cannot be made.
  network_wave(const watched_system& system, const wave_config& config);
  /// What has been shown is written, whatever has ended the run.
  ~network_wave();
  network_wave(const network_wave&) = delete;
  network_wave& operator=(const network_wave&) = delete;

  /// All hosts are ready.
  void begin();
  /// Throws usage_error when the file could not be written.
  wave_counts finish();
  sim::time_ps begin_ps() const { return origin_; }

 private:
  /// A clock and what is looked at behind its edges.
  struct domain final : sim::edge_watcher_if {
    domain(network_wave& part_of, sim::clock_domain& clock) : of(part_of), shown(*part_of.file_, clock) {}
    void served(sim::clock_domain& clock) override;
    network_wave& of;
    clock_wave shown;
    std::vector<channel_wave*> channels;
    std::vector<memory_wave*> memories;
    std::vector<pipeline_wave*> pipelines;
  };
  void choose();
  void make_file();
  void add_channels();
  /// Of what is part of a block.
  template <class Wave, class Part>
  void add_parts(std::vector<std::unique_ptr<Wave>>& to, const std::vector<Part*>& chosen);
  void take(domain& of, memory_wave& m) { of.memories.push_back(&m); }
  void take(domain& of, pipeline_wave& p) { of.pipelines.push_back(&p); }
  void take(domain&, engine_wave&) {}  // which tells of itself
  domain& domain_of(sim::clock_domain& clock);
  /// Counters of what is shown.
  std::map<std::string, std::uint64_t> use() const;
  void trace_rtl();
  void write_rtl();
  std::string part_name(std::size_t number) const { return config_.file + "." + std::to_string(number) + ".part"; }

  watched_system system_;
  wave_config config_;
  std::vector<sim::channel*> chosen_;
  std::vector<sim::memory_ports*> memories_;
  std::vector<sim::server*> engines_;
  std::vector<sim::pipeline*> pipelines_;
  std::vector<hosts::rtl_block> rtl_;
  std::unique_ptr<wave_file> file_;  // with blocks of RTL the first part
  std::vector<std::unique_ptr<domain>> domains_;
  std::vector<std::unique_ptr<channel_wave>> channels_;
  std::vector<std::unique_ptr<memory_wave>> memory_waves_;
  std::vector<std::unique_ptr<engine_wave>> engine_waves_;
  std::vector<std::unique_ptr<pipeline_wave>> pipeline_waves_;
  std::unique_ptr<wave_changes> changes_;  // from begin() on
  std::vector<wave_part> parts_;
  sim::time_ps origin_ = 0, from_ = 0, until_ = 0, latest_ = 0;
  std::map<std::string, std::uint64_t> used_before_;
  wave_counts counts_;
};

}  // namespace rnic::bench
