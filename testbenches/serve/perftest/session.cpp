// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/perftest/session.h"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <cstdio>
#include <numeric>
#include <random>

#include "model/wire/ethernet.h"
#include "testbenches/bench/connection.h"

namespace rnic::serve::perftest {

using namespace host_driver;

namespace {

constexpr unsigned inline_bytes = 220;
constexpr double mebibyte = 1 << 20;

double seconds(sim::time_ps t) { return static_cast<double>(std::max<sim::time_ps>(t, 1)) * 1e-12; }
double us(sim::time_ps t) { return static_cast<double>(t) * 1e-6; }

}  // namespace

places::places(std::uint32_t size, const exchange::agreement& a, bool in_turns)
    : bytes(std::max<std::size_t>(size, a.cycle_bytes)) {
  stride = (std::max(size, 1u) + a.line_bytes - 1) / a.line_bytes * a.line_bytes;
  if (in_turns && size <= a.cycle_bytes / 2) count = std::max(a.cycle_bytes / stride, 1u);
}

session::session(served_host& host, address_exchange& socket, const perftest_options& o)
    : host_(host),
      device_(host.device()),
      socket_(socket),
      o_(o),
      exchange_(socket, client()),
      size_(o.message_bytes()),
      iterations_(o.messages()),
      depth_(o.latency ? 1 : o.depth),
      objects_(device_),
      lanes_(o.queue_pairs) {}

int session::peers_access() const {
  switch (o_.verb) {
    case perftest_verb::write:
      return IBV_ACCESS_REMOTE_WRITE;
    case perftest_verb::read:
      return IBV_ACCESS_REMOTE_READ;
    case perftest_verb::atomic:
      return IBV_ACCESS_REMOTE_ATOMIC;
    case perftest_verb::send:
      break;
  }
  return 0;
}

void session::make_lane(lane& l) {
  const bool atomic = o_.verb == perftest_verb::atomic, receives = o_.verb == perftest_verb::send;
  l.out = objects_.buffer(atomic ? depth_ * sizeof(std::uint64_t) : places_.bytes);
  l.in = objects_.buffer(places_.bytes, IBV_ACCESS_LOCAL_WRITE | peers_access());
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = o_.type;
  init.cap.max_send_wr = depth_;
  init.cap.max_recv_wr = receives ? o_.receive_depth : 1;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 2;
  if (o_.latency) init.cap.max_inline_data = inline_bytes;
  l.qp = objects_.qp(init);
  to_init(device_, l.qp, o_.type, peers_access());
  fill(l);
  const bool reads = atomic || o_.verb == perftest_verb::read;
  l.own.reads = reads ? static_cast<std::uint32_t>(limits_.max_qp_rd_atom) : 1;
  l.own.qpn = l.qp->qp_num;
  l.own.psn = starting_psn(o_.seed, host_.mac(), l.qp->qp_num);
  l.own.rkey = l.in.region->rkey;
  l.own.address = l.in.region->iova;
  l.own.gid = device_.port(1).gids[static_cast<std::size_t>(o_.gid_index)].id;
}

/// What is sent or read looks like nothing else; what is written to or counted begins with zeroes, as does everything
/// in the test of WRITE's latency, whose messages are told by their last byte.
void session::fill(lane& l) const {
  if (o_.verb == perftest_verb::atomic || (o_.verb == perftest_verb::write && o_.latency)) return;
  const app_buffer& b = o_.verb == perftest_verb::read ? l.in : l.out;
  std::mt19937_64 random(o_.seed ^ (wire::to_u64(host_.mac()) << 16) ^ l.qp->qp_num);
  std::generate(b.at(), b.at(places_.bytes), [&random] { return static_cast<std::uint8_t>(random()); });
}

void session::meet() {
  if (client() ? !socket_.connect(o_.server, o_.port, o_.connect_ps) : !socket_.accept())
    throw peer_failure(client() ? fmt::format("nobody answers at {}:{}", o_.server, o_.port)
                                : "no client could be accepted");
  exchange::agreement own;
  own.mtu = o_.mtu;
  agreed_ = exchange_.agree(own);
  if (o_.type == IBV_QPT_UD && size_ > agreed_.mtu)
    throw peer_failure(fmt::format("a datagram of {} bytes is longer than the MTU, {}", size_, agreed_.mtu));
  places_ = places(size_, agreed_, !o_.latency);
  bench::require(device_.query_device(&limits_), "query_device");
  const unsigned receives = o_.verb == perftest_verb::send ? o_.receive_depth : 0;
  cq_ = objects_.cq((depth_ + receives) * static_cast<unsigned>(lanes_.size()));
  for (lane& l : lanes_) make_lane(l);
  tell_all();
  for (lane& l : lanes_) connect(l);
  if (told_once_more()) tell();
  tell_all();
}

void session::tell_all() {
  for (lane& l : lanes_) l.peer = exchange_.tell(l.own);
}

void session::connect(lane& l) {
  const auto mac = host_.resolve(l.peer.gid, o_.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(l.peer.gid));
  qp_route route{o_.type, agreed_.mtu, l.own.psn, l.peer.psn, l.peer.qpn};
  route.reads_taken = l.own.reads;
  route.reads_made = std::clamp(l.peer.reads, 1u, static_cast<std::uint32_t>(limits_.max_qp_init_rd_atom));
  route.path = path_to(l.peer.gid, o_.gid_index, o_.service_level, 255);
  route.mac = *mac;
  route.ack_timeout = o_.ack_timeout;
  to_ready_to_receive(device_, l.qp, route);
  if (asks() || o_.latency) to_ready_to_send(device_, l.qp, route);
  if (o_.type == IBV_QPT_UD) l.ah = objects_.ah(route.path, *mac);
}

ibv_send_wr session::request(const lane& l) const {
  ibv_send_wr wr{};
  wr.wr_id = static_cast<std::uint64_t>(&l - lanes_.data());
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.opcode = o_.verb == perftest_verb::write  ? IBV_WR_RDMA_WRITE
              : o_.verb == perftest_verb::read ? IBV_WR_RDMA_READ
                                               : IBV_WR_SEND;
  const bool carries = o_.verb == perftest_verb::write || o_.verb == perftest_verb::send;
  if (carries && o_.latency && size_ <= l.qp->max_inline) wr.send_flags |= IBV_SEND_INLINE;
  if (o_.type == IBV_QPT_UD) {
    wr.wr.ud.ah = l.ah;
    wr.wr.ud.remote_qpn = l.peer.qpn;
    wr.wr.ud.remote_qkey = datagram_qkey;
  } else {
    wr.wr.rdma.remote_addr = l.peer.address + places_.offset(l.posted);
    wr.wr.rdma.rkey = l.peer.rkey;
  }
  return wr;
}

void session::post_request(lane& l) {
  post(device_, l.qp, request(l), l.out.sge(size_, places_.offset(l.posted)));
  ++l.posted;
}

lane& session::lane_of(const ibv_wc& wc) { return lanes_.at(wc.wr_id & ~receive_bit); }

std::vector<ibv_wc> session::completions() {
  constexpr int most = 16;
  std::vector<ibv_wc> done(most);
  const int n = device_.wait_cq(cq_, most, done.data(), o_.patience_ps);
  bench::require(n, "poll_cq");
  if (n == 0) throw peer_failure("the peer does not answer any more");
  done.resize(static_cast<std::size_t>(n));
  for (const ibv_wc& wc : done) require_success(wc);
  return done;
}

void session::report_memory(application_result& r, bool of_requests) const {
  for (const lane& l : lanes_) {
    boost::crc_32_type sum;
    const std::uint64_t used = std::min<std::uint64_t>(places_.count, iterations_);
    const app_buffer& b = of_requests ? l.out : l.in;
    for (std::uint64_t i = 0; i < used; ++i) sum.process_bytes(b.at(places_.offset(i)), size_);
    r.memory.push_back({l.own.qpn, l.peer.qpn, sum.checksum()});
  }
}

report session::bandwidth(sim::time_ps took) const {
  const double messages = static_cast<double>(iterations_ * lanes_.size()), per_second = messages / seconds(took);
  report b;
  b.size = size_;
  b.iterations = iterations_;
  b.peak = b.average = per_second * size_ / mebibyte;
  b.rate = per_second * 1e-6;
  return b;
}

void session::print_bandwidth(std::uint64_t messages, sim::time_ps took) const {
  const double rate = static_cast<double>(messages) / seconds(took);
  fmt::print(" {:>9} {:>13} {:>15} {:>14} {:>15}\n", "bytes", "iterations", "average MiB/s", "average Gb/s",
             "10^6 messages/s");
  fmt::print(" {:>9} {:>13} {:>15.2f} {:>14.4f} {:>15.6f}\n", size_, messages, rate * size_ / mebibyte,
             rate * size_ * 8e-9, rate * 1e-6);
  std::fflush(stdout);
}

void session::print_latency(std::vector<sim::time_ps> times) const {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto total = std::accumulate(times.begin(), times.end(), sim::time_ps{0});
  fmt::print(" {:>9} {:>13} {:>10} {:>10} {:>12} {:>10} {:>10}\n", "bytes", "iterations", "least us", "most us",
             "typical us", "mean us", "99 % us");
  fmt::print(" {:>9} {:>13} {:>10.2f} {:>10.2f} {:>12.2f} {:>10.2f} {:>10.2f}\n", size_, iterations_, us(times.front()),
             us(times.back()), us(times[times.size() / 2]), us(total / times.size()),
             us(times[times.size() * 99 / 100]));
  std::fflush(stdout);
}

void session::run(application_result& r) {
  meet();
  r.local = fmt::format("QPN 0x{:06x}, GID {}", lanes_.front().own.qpn, wire::to_string(lanes_.front().own.gid));
  r.remote = fmt::format("QPN 0x{:06x}, GID {}", lanes_.front().peer.qpn, wire::to_string(lanes_.front().peer.gid));
  r.message_bytes = size_;
  r.places = {places_.stride, places_.count};
  fmt::print("  local address:  {}\n  remote address: {}\n", r.local, r.remote);
  std::fflush(stdout);
  test(r);
  sc_core::wait(sc_core::sc_time::from_value(linger_ps));
}

}  // namespace rnic::serve::perftest
