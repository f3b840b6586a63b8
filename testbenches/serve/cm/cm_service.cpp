// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm/cm_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint64_t slice_ps = sim::ps_per_us * 1000;  // between two looks for what tells nobody that it has come
constexpr std::uint64_t no_hurry_ps = 3600 * sim::ps_per_s;
constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::size_t most_outgoing = 4096, most_versions_told = 256;
constexpr std::size_t most_waiting = 256;  // requests: as many as --qps connections of one client
constexpr std::uint8_t next_header_ib = 0x1b;

gid_bytes mapped(const std::uint8_t* ipv4) {
  gid_bytes g{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  std::copy_n(ipv4, 4, g.begin() + 12);
  return g;
}

}  // namespace

cm_service::cm_service(served_host& host, std::optional<ibv_gid_type> only)
    : device_(host.device()), version_(only), choices_(device_), objects_(device_) {
  cm::connection_manager_config config;
  config.backlog = most_waiting;
  // As a Linux host: the numbers of a process before this one are other ones.
  config.first_id = std::random_device{}() & 0x7fffffff;
  config.ca_guid = wire::to_u64(host.mac()) | std::uint64_t{0x0200} << 48;
  cm::mad_output_if& out = *this;
  manager_ = std::make_unique<cm::connection_manager>(out, config);
  receive_cq_ = objects_.cq(receives);
  send_cq_ = objects_.cq(2 * sends);
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.cap.max_send_wr = sends;
  init.cap.max_recv_wr = receives;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  qp_ = made(device_.create_gsi(objects_.pd(), &init, 1), "create_gsi");
  receive_buffer_ = objects_.buffer(std::size_t{receives} * receive_bytes);
  send_buffer_ = objects_.buffer(std::size_t{sends} * mad_bytes);
  for (unsigned i = 0; i < receives; ++i)
    post_receive(device_, qp_, i, receive_buffer_.sge(receive_bytes, std::uint64_t{i} * receive_bytes));
  running_ = true;
  sc_core::sc_spawn(
      [this] {
        run();
        running_ = false;
        ended_.notify(sc_core::SC_ZERO_TIME);
      },
      sc_core::sc_gen_unique_name("connection_manager"));
}

cm_service::~cm_service() {
  stop_ = true;
  device_.end_wait(receive_cq_);
  while (running_) sc_core::wait(ended_);
  device_.destroy_qp(qp_);
}

void cm_service::send_mad(const cm::address& to, const cm::mad& datagram) {
  if (outbox_.size() == most_outgoing) {
    ++outbox_full_;
    return;
  }
  outbox_.push_back({to, datagram});
  device_.end_wait(receive_cq_);
}

void cm_service::run() {
  while (!stop_) {
    if (leaving_) end_connections();
    ibv_wc wc{};
    while (device_.poll_cq(send_cq_, 1, &wc) > 0) --sending_;
    while (!outbox_.empty() && sending_ < sends - 1) post_one();
    const std::uint64_t due = manager_->deadline_ps();
    const std::uint64_t now = now_ps();
    // Events of the device and room in the send queue come without a write that is waited for here.
    const bool looks = manager_->awaits_confirmation() || !outbox_.empty();
    const std::uint64_t patience = due <= now || leaving_ ? 1 : std::min(looks ? slice_ps : no_hurry_ps, due - now);
    if (device_.wait_cq(receive_cq_, 1, &wc, patience) > 0) take(wc, device_.last_source(*receive_cq_));
    if (manager_->awaits_confirmation()) take_device_events();
    manager_->tick(now_ps());
    if (manager_->has_event()) something_happened_.notify(sc_core::SC_ZERO_TIME);
  }
}

/// A client's first packet is as good as its confirmation.
void cm_service::take_device_events() {
  constexpr std::uint64_t at_once_ps = 1;
  ibv_async_event e{};
  while (device_.get_async_event(&e, at_once_ps))
    if (e.event_type == IBV_EVENT_COMM_EST) manager_->data_came(e.element.qp->qp_num);
}

void cm_service::post_one() {
  const outgoing o = outbox_.front();
  outbox_.pop_front();
  ibv_ah_attr path = path_to(o.to.gid, o.to.gid_index, o.to.service_level, kernel_hop_limit, o.to.traffic_class);
  address_handle* ah = device_.create_ah(objects_.pd(), &path, &o.to.mac);
  if (ah == nullptr) return;
  const std::size_t offset = std::size_t{next_send_} * mad_bytes;
  next_send_ = (next_send_ + 1) % sends;
  std::copy(o.datagram.begin(), o.datagram.end(), send_buffer_.at(offset));
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = 1;
  wr.wr.ud.remote_qkey = gsi_qkey;
  post(device_, qp_, wr, send_buffer_.sge(mad_bytes, offset));
  ++sending_;
  device_.destroy_ah(ah);  // the request has all of it
}

/// Sender's address, and the row of our GID table that it was sent to, from the headers in front of a datagram
/// (adapter data plane A.9.2).
bool cm_service::find_own(const std::uint8_t* area, cm::address& from) const {
  gid_bytes own{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V2;
  if (area[0] >> 4 == 6) {
    std::copy_n(area + 8, from.gid.size(), from.gid.begin());
    std::copy_n(area + 24, own.size(), own.begin());
    if (area[6] == next_header_ib) type = IBV_GID_TYPE_ROCE_V1;
  } else {
    from.gid = mapped(area + 32);
    own = mapped(area + 36);
  }
  const auto& gids = device_.port(1).gids;
  const auto row = std::find_if(gids.begin(), gids.end(),
                                [&](const gid_row& g) { return g.valid && g.id == own && g.type == type; });
  from.gid_index = static_cast<int>(row - gids.begin());
  return row != gids.end();
}

void cm_service::take(const ibv_wc& wc, const mac_address& source) {
  const std::uint64_t offset = wc.wr_id * receive_bytes;
  if (wc.status == IBV_WC_SUCCESS && wc.byte_len == receive_bytes) {
    cm::address from;
    from.mac = source;
    const std::uint8_t* datagram = receive_buffer_.at(offset + grh_bytes);
    if (!find_own(receive_buffer_.at(offset), from))
      ++not_for_us_;
    else if (version_ && device_.port(1).gids[static_cast<std::size_t>(from.gid_index)].type != *version_)
      take_other_version(from, datagram);
    else if (version_ || choices_.admits(1, from.gid_index) || !manager_->refuse_request(from, datagram, mad_bytes))
      manager_->receive(from, datagram, mad_bytes, now_ps());
  }
  post_receive(device_, qp_, wc.wr_id, receive_buffer_.sge(receive_bytes, offset));
}

/// The row of our version with the address of a row of the other one.
std::optional<int> cm_service::own_row_like(int other) const {
  const auto& gids = device_.port(1).gids;
  const gid_row& like = gids[static_cast<std::size_t>(other)];
  const auto row = std::find_if(gids.begin(), gids.end(), [&](const gid_row& g) {
    return g.valid && g.id == like.id && g.vlan == like.vlan && g.type == *version_;
  });
  return row == gids.end() ? std::nullopt : std::optional(static_cast<int>(row - gids.begin()));
}

/// Hosts do not meet over two RoCE versions. A peer's request is refused, in our version; its refusal of ours counts.
void cm_service::take_other_version(const cm::address& from, const std::uint8_t* datagram) {
  ++wrong_version_;
  if (of_other_version_.size() < most_versions_told && of_other_version_.insert(from.gid).second) {
    fmt::print("{}{}\n", wire::to_string(from.gid), other_version(from.gid));
    std::fflush(stdout);
  }
  cm::address answer = from;
  const auto row = own_row_like(from.gid_index);
  if (!row) return;
  answer.gid_index = *row;
  manager_->refuse_version(answer, datagram, mad_bytes, now_ps());
}

std::string cm_service::other_version(const gid_bytes& peer) const {
  if (of_other_version_.count(peer) == 0) return "";
  const bool v2 = *version_ == IBV_GID_TYPE_ROCE_V2;
  return fmt::format(": it speaks RoCE {}, this host is set to RoCE {} (--roce)", v2 ? "v1" : "v2", v2 ? "v2" : "v1");
}

template <class Take>
std::optional<cm_service::event> cm_service::wait_for(Take take, std::uint64_t timeout_ps) {
  const std::uint64_t begin = now_ps();
  const std::uint64_t deadline = timeout_ps > never - begin ? never : begin + timeout_ps;
  for (;;) {
    event e;
    if (take(e)) return e;
    const std::uint64_t now = now_ps();
    if (now >= deadline) return std::nullopt;
    sc_core::wait(sc_core::sc_time::from_value(deadline - now), something_happened_);
  }
}

std::optional<cm_service::event> cm_service::wait_of(connection_id id, std::uint64_t timeout_ps) {
  return wait_for([&](event& e) { return manager_->take_event_of(id, e); }, timeout_ps);
}

std::optional<cm_service::event> cm_service::wait_request(std::uint64_t timeout_ps,
                                                          const std::function<bool(const event&)>& wanted) {
  return wait_for([&](event& e) { return manager_->take_request(e, wanted); }, timeout_ps);
}

std::optional<cm_service::event> cm_service::take_request(const std::function<bool(const event&)>& wanted) {
  event e;
  return manager_->take_request(e, wanted) ? std::optional(e) : std::nullopt;
}

void cm_service::wait_news(std::uint64_t timeout_ps) {
  sc_core::wait(sc_core::sc_time::from_value(timeout_ps), something_happened_);
}

std::optional<cm_service::event> cm_service::wait_any(std::uint64_t timeout_ps) {
  return wait_for(
      [&](event& e) {
        if (!manager_->has_event()) return false;
        e = manager_->take_event();
        return true;
      },
      timeout_ps);
}

void cm_service::clear() {
  while (manager_->has_event()) {
    const event e = manager_->take_event();
    manager_->abandon(e.id, now_ps());
  }
}

void cm_service::leave() {
  leaving_ = true;
  device_.end_wait(receive_cq_);
}

/// No packet comes behind the wish to end. A Linux host does the same (core/cma.c:rdma_disconnect).
void cm_service::end_connections() {
  const std::vector<connection_end_if*> ends(ends_.begin(), ends_.end());
  for (connection_end_if* end : ends) {
    if (ends_.count(end) == 0) continue;  // it has ended meanwhile
    stopping_ = end;
    end->stop();
    stopping_ = nullptr;
    stopped_.notify(sc_core::SC_ZERO_TIME);
  }
  manager_->abandon_all(now_ps());
  leaving_ = false;
}

void cm_service::retire(connection_end_if& end) {
  ends_.erase(&end);
  while (stopping_ == &end) sc_core::wait(stopped_);
}

void cm_service::leave(std::uint64_t at_most_ps) {
  leave();
  for (const std::uint64_t deadline = now_ps() + at_most_ps; !left() && now_ps() < deadline;)
    sc_core::wait(sc_core::sc_time::from_value(slice_ps));
}

}  // namespace rnic::serve
