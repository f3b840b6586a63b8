// SPDX-License-Identifier: Apache-2.0
// One adapter of `rnic serve`: its host, the applications on it, and what came of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "host_driver/hosts/two_nodes.h"
#include "testbenches/rnic/serve/serve_applications.h"
#include "testbenches/rnic/serve/serve_notices.h"
#include "testbenches/serve/host/served_host.h"
#include "testbenches/serve/links/real_time.h"
#include "testbenches/serve/script/script.h"

namespace rnic::program {

class serve_station {
 public:
  /// `options`: of_adapter(). `system`: with the parameters of all adapters. `all_ports`: has its ports with a link,
  /// and outlives it. Throws usage_error and what serve::served_host does.
  serve_station(const serve_options& options, unsigned index, const hosts::two_nodes_config& system,
                hosts::system_capture& all_ports, const adapter::environment& env, boost::asio::io_context& io,
                serve::real_time& clock, serve_notices& notices);

  /// Brings the adapter up and checks the options that need it. In an SC_THREAD.
  void start();
  /// To their end. In an SC_THREAD. `ready`: called once clients can come; what it waits for, waits.
  void run_applications(const std::function<void()>& ready);
  /// nullptr in a topology.
  serve::link_port* link() const { return host_->link(); }
  serve::link_port* second_link() const { return host_->second_link(); }  ///< of port 2, when there is one
  /// In a topology: the adapter's end of a cable, and that cable, of which a capture is taken.
  payload::frame_port_if& connector() { return host_->connector(); }
  void capture(fabric::cable& cable) { host_->capture(cable); }
  void close_capture() { host_->close_capture(); }
  const std::string& name() const { return name_; }
  host_driver::device& device() { return host_->device(); }
  /// The peers of the applications are told that they are left, from any process; left(): they have answered.
  void leave();
  bool left() const;
  /// After all that: the network is told that the host goes; has_departed(): that has been sent.
  void depart() { host_->depart(); }
  bool has_departed() const { return host_->has_departed(); }
  /// It has neighbours to say good-bye to when everything else is over.
  bool has_agent() const { return host_->dcb() != nullptr; }
  /// There was no application, or all of its runs went well.
  bool ok() const;
  void print_start();  ///< the line that says where it is reached
  /// The line that says what went through its link, if it has one, and what was agreed with its peer.
  void print_link() const;
  /// Members link, network, runs and connection_manager.
  nlohmann::json results() const;

 private:
  serve::host_config host_config(unsigned index, const hosts::two_nodes_config& system,
                                 hosts::system_capture& all_ports) const;
  int gid_index();
  std::optional<ibv_gid_type> only_version();
  std::unique_ptr<serve::reception> receive_clients();
  serve::application_result run_application();
  serve::application_result try_application();
  void report(const serve::application_result& run);
  void listen();
  void open_script();
  void watch_agent();

  serve_options options_;
  unsigned index_;
  std::string name_;  // of the host
  serve_notices& notices_;
  std::string prefix_;  // of what is printed but the first line, when there are several
  serve::address_exchange exchange_;
  std::unique_ptr<serve::served_host> host_;
  std::unique_ptr<serve::script::line_channel> channel_;  // of --app script
  std::string script_at_;
  std::deque<serve::application_result> runs_;  // the last ones
  std::string agreed_;                          // the last line about it
  std::string agreed_at_the_end_;               // before the farewell
  nlohmann::json agreement_;                    // the same
  bool leaving_ = false;
  std::uint64_t runs_made_ = 0, runs_failed_ = 0;
  serve::cm_service* service_ = nullptr;  // lives in the applications' process, as does:
  serve::reception* clients_ = nullptr;
  std::optional<host_driver::cm::connection_manager_counters> managed_;
  std::optional<serve::reception_counters> received_;
};

}  // namespace rnic::program
