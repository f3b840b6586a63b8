// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/system_capture.h"

#include <string_view>

namespace rnic::hosts {

bool system_capture::has_all_ports(const std::string& path) {
  constexpr std::string_view ending = ".pcapng";
  return path.size() >= ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
}

system_capture::system_capture(const std::string& path, const tlm::capture_writer::config& config) {
  if (path.empty()) return;
  if (has_all_ports(path))
    ports_ = std::make_unique<tlm::port_capture>(path, config);
  else
    cable_ = std::make_unique<tlm::capture_writer>(path, config);
}

void system_capture::add(fabric::cable& c, const std::string& first, const std::string& second) {
  if (!ports_) return;
  const auto port = [this](const std::string& name) {
    return name.empty() ? tap::no_port : static_cast<int>(ports_->add_port(name));
  };
  const int ports[] = {port(first), port(second)};
  taps_.emplace_back(*ports_, ports, false, 0);
  c.add_observer(taps_.back(), fabric::cable::tap::before);
  taps_.emplace_back(*ports_, ports, true, c.propagation_ps());
  c.add_observer(taps_.back(), fabric::cable::tap::behind);
}

void system_capture::add_counters(sim::statistics& to, const std::string& name) const {
  if (cable_) {
    to.add(name + ".frames", cable_->frames());
    to.add(name + ".wrong_fcs", cable_->wrong_fcs());
  } else if (ports_) {
    to.add(name + ".frames", ports_->frames());
    to.add(name + ".wrong_fcs", ports_->wrong_fcs());
  }
}

void system_capture::close() {
  if (cable_) cable_->close();
  if (ports_) ports_->close();
}

}  // namespace rnic::hosts
