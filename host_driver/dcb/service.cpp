// SPDX-License-Identifier: Apache-2.0
#include "host_driver/dcb/service.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "host_driver/dcb/port_commands.h"

namespace rnic::host_driver::dcb {

namespace {

constexpr std::uint8_t control_priority = 7;          // TC_PRIO_CONTROL, with which lldpad sends
constexpr std::uint64_t processing_ps = 20'000'000;   // of a frame, by a daemon; nobody waits for it
constexpr unsigned ethernet_overhead = 14 + 4 + 4;    // header, one tag, FCS
constexpr std::uint64_t farewell_ps = 1'000'000'000;  // until the last frame has left
constexpr std::uint64_t longest_wait_ps = 3'600'000'000'000'000;

wire::lldp_id id_of(std::uint8_t subtype, const mac_address& mac) { return {subtype, {mac.begin(), mac.end()}}; }

}  // namespace

service::service(device& dev, bus_if& bus, unsigned port)
    : dev_(dev),
      bus_(bus),
      port_(port),
      own_(dev.port(port).mac),
      local_(local_values(dev.settings().dcb, dev.settings().pfc_mask)),
      agent_(own_, dev.settings().dcb.lldp, *this) {}

int service::start() {
  if (const int error = make_queue_pair()) return error;
  apply(agree(local_, own_, nullptr));
  if (command_errors_ != 0) return -EIO;
  agent_.start(unit(), bus_.now_ps());
  return 0;
}

int service::make_queue_pair() {
  protection_domain* pd = dev_.alloc_pd();
  if (pd == nullptr) return -errno;
  send_cq_ = dev_.create_cq(static_cast<int>(sends));
  receive_cq_ = dev_.create_cq(static_cast<int>(receives));
  if (send_cq_ == nullptr || receive_cq_ == nullptr) return -errno;
  memory_ = dev_.allocate_buffer(std::size_t{sends + receives} * frame_bytes);
  if (memory_.pointer == nullptr) return -ENOMEM;
  region_ = dev_.reg_mr(pd, memory_.pointer, memory_.bytes, IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return -errno;
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {sends, receives, 1, 1, 0};
  qp_ = dev_.create_qp(pd, &init);
  if (qp_ == nullptr) return -errno;
  qp_->ethernet.priority = control_priority;
  ibv_qp_attr attr{};
  attr.port_num = static_cast<std::uint8_t>(port_);
  attr.qp_state = IBV_QPS_INIT;
  if (const int error = dev_.modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PORT)) return error;
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = to;
    if (const int error = dev_.modify_qp(qp_, &attr, IBV_QP_STATE)) return error;
  }
  for (unsigned slot = 0; slot < receives; ++slot)
    if (const int error = post_receive(slot)) return error;
  return dev_.create_flow(qp_, port_, wire::lldp_nearest_bridge) == nullptr ? -errno : 0;
}

int service::post_receive(unsigned slot) {
  ibv_sge sge{region_->iova + std::uint64_t{sends + slot} * frame_bytes, frame_bytes, region_->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = slot;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  return dev_.post_recv(qp_, &wr, &bad);
}

wire::lldp_unit service::unit() const {
  wire::lldp_unit u;
  u.chassis = id_of(wire::lldp_id::chassis_mac, dev_.port(1).mac);
  u.port = id_of(wire::lldp_id::port_mac, own_);
  u.port_description = "eth" + std::to_string(port_);
  u.system_name = dev_.settings().dcb.system_name;
  const firmware_info& fw = dev_.firmware();
  char description[64];
  std::snprintf(description, sizeof description, "RoCE adapter model, firmware %u.%u.%u", unsigned{fw.major},
                unsigned{fw.minor}, unsigned{fw.subminor});
  u.system_description = description;
  u.capabilities = wire::lldp_unit::station_only;
  u.largest_frame = static_cast<std::uint16_t>(std::min(dev_.settings().mtu + ethernet_overhead, 0xffffu));
  u.dcbx = local_;
  u.dcbx.ets->table = now_.ets;  // what is in force; what the peer should do is what the administrator has said
  u.dcbx.pfc->enabled = now_.pfc;
  return u;
}

void service::transmit(const std::uint8_t* frame, std::size_t length) {
  if (waiting_.size() == sends) waiting_.pop_front();  // the port is stopped: what is new says more
  if (length <= frame_bytes) waiting_.emplace_back(frame, frame + length);
}

/// What the send queue has room for.
int service::post_waiting() {
  ibv_wc done{};
  while (dev_.poll_cq(send_cq_, 1, &done) > 0) --under_way_;
  while (!waiting_.empty() && under_way_ < sends) {
    const std::uint64_t at = std::uint64_t{next_send_++ % sends} * frame_bytes;
    const std::vector<std::uint8_t> frame = std::move(waiting_.front());
    waiting_.pop_front();
    std::copy(frame.begin(), frame.end(), memory_.pointer + at);
    ibv_sge sge{region_->iova + at, static_cast<std::uint32_t>(frame.size()), region_->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ++under_way_;
    if (const int error = dev_.post_send(qp_, &wr, &bad)) {
      --under_way_;
      return error;
    }
  }
  return 0;
}

/// True when something is known that was not.
bool service::take_received() {
  bool changed = false;
  ibv_wc wc{};
  while (dev_.poll_cq(receive_cq_, 1, &wc) > 0) {
    const auto slot = static_cast<unsigned>(wc.wr_id);
    const std::uint8_t* frame = memory_.pointer + std::size_t{sends + slot} * frame_bytes;
    if (wc.status == IBV_WC_SUCCESS) {
      bus_.sleep_ps(processing_ps);
      changed |= agent_.receive(frame, std::min(wc.byte_len, frame_bytes), bus_.now_ps());
    }
    post_receive(slot);
  }
  return changed;
}

/// What follows from the neighbours is put in force, and the peer is told.
void service::settle() {
  const operational to = agree(local_, own_, peer_of(agent_.neighbours()));
  if (to != now_) {
    apply(to);
    ++changes_;
    agent_.change(unit(), bus_.now_ps());
  }
  if (tell_) tell_();
}

void service::apply(const operational& to) {
  if (!applied_ || to.ets != now_.ets)
    if (set_ets(dev_, port_, to.ets) != 0) ++command_errors_;
  if (!applied_ || to.pfc != now_.pfc)
    if (set_pfc(dev_, port_, to.pfc) != 0) ++command_errors_;
  applied_ = true;
  now_ = to;
}

void service::run() {
  while (!stopping_) {
    bool changed = take_received();
    changed |= agent_.tick(bus_.now_ps());
    if (changed) settle();
    post_waiting();
    if (stopping_) break;
    const std::uint64_t now = bus_.now_ps(), next = agent_.next_ps();
    ibv_wc none{};
    if (next > now) dev_.wait_cq(receive_cq_, 0, &none, std::min(next - now, longest_wait_ps));
  }
  agent_.stop(bus_.now_ps());
  post_waiting();
  ibv_wc none{};
  const std::uint64_t until = bus_.now_ps() + farewell_ps;
  while (under_way_ != 0 && bus_.now_ps() < until && dev_.wait_cq(send_cq_, 0, &none, until - bus_.now_ps()) >= 0)
    post_waiting();
  const operational before = now_;
  apply(agree(local_, own_, nullptr));
  if (now_ != before && tell_) tell_();
  ended_ = true;
}

void service::stop() {
  if (stopping_) return;
  stopping_ = true;
  if (receive_cq_ != nullptr) dev_.end_wait(receive_cq_);  // it may still be about to begin
}

service::state service::current() const {
  state s;
  s.now = now_;
  s.local = local_;
  s.neighbours = agent_.neighbours();
  if (const lldp_neighbour* peer = peer_of(agent_.neighbours(), &s.several)) s.peer = *peer;
  s.lldp = agent_.count();
  s.changes = changes_;
  s.command_errors = command_errors_;
  return s;
}

}  // namespace rnic::host_driver::dcb
