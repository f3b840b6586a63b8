// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/outputs.h"

#include <string_view>

namespace rnic::replay {

namespace {

constexpr std::string_view commented_ending = ".pcapng";

bool has_comments(const std::string& file) {
  return file.size() >= commented_ending.size() &&
         file.compare(file.size() - commented_ending.size(), commented_ending.size(), commented_ending) == 0;
}

/// What happens next on a connection, in the order of the capture.

}  // namespace

outputs::outputs(const replay_settings& settings, fabric::cable& cable) {
  const tlm::capture_writer::config& how = settings.system.capture_options;
  for (const std::string& file : settings.outputs) {
    captures_.push_back(std::make_unique<tlm::capture_writer>(file, how));
    cable.add_observer(*captures_.back());
  }
  if (settings.merged_output.empty()) return;
  if (has_comments(settings.merged_output)) {
    tlm::pcapng_writer::config ng;
    ng.capture = how;
    ng.names[from_adapter] = "from the adapter";
    ng.names[to_adapter] = "to the adapter";
    ng.inbound[to_adapter] = true;
    commented_ = std::make_unique<tlm::pcapng_writer>(settings.merged_output, ng);
    cable.add_observer(*commented_);
  } else {
    merged_ = std::make_unique<tlm::capture_writer>(settings.merged_output, how);
    cable.add_observer(*merged_);
  }
}

void outputs::set_clock(const tlm::file_clock& as_captured) {
  if (merged_) merged_->set_clock(as_captured);
  if (commented_) commented_->set_clock(as_captured);
}

void outputs::close(const std::function<comments()>& say) {
  for (auto& c : captures_) c->close();
  if (merged_) merged_->close();
  if (!commented_) return;
  const comments about = say();
  commented_->close(about.of_frames, about.about);
}

}  // namespace rnic::replay
