// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/perftest/session.h"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <cstdio>
#include <numeric>
#include <random>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"

namespace rnic::serve::perftest {

using namespace host_driver;

namespace {

constexpr double mebibyte = 1 << 20;
constexpr std::uint32_t smallest_bytes = 2;  // of all sizes

double seconds(sim::time_ps t) { return static_cast<double>(std::max<sim::time_ps>(t, 1)) * 1e-12; }
double us(sim::time_ps t) { return static_cast<double>(t) * 1e-6; }

}  // namespace

places::places(std::uint32_t size, const exchange::agreement& a, bool in_turns) {
  stride = (std::max(size, 1u) + a.line_bytes - 1) / a.line_bytes * a.line_bytes;
  if (in_turns && size <= a.cycle_bytes / 2) count = std::max(a.cycle_bytes / stride, 1u);
}

std::vector<std::uint32_t> session::sizes() const {
  if (!o_.all_sizes) return {size_};
  std::vector<std::uint32_t> all;
  for (std::uint32_t bytes = smallest_bytes; bytes <= size_; bytes *= 2) all.push_back(bytes);
  return all;
}

void session::set_size(std::uint32_t bytes) {
  size_ = bytes;
  places_ = places(size_, agreed_, !o_.latency);
  for (lane& l : lanes_) l.posted = l.completed = l.received = l.receives = 0;
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

void session::start() {
  start_ = now();
  end_ = std::chrono::steady_clock::now() + std::chrono::seconds(o_.seconds);
}

/// What a slower peer has not taken would be repeated as long as the queue pair lives.
void session::give_up() {
  if (!timed() || answers()) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  for (lane& l : lanes_) hosts::require(device_.modify_qp(l.qp, &attr, IBV_QP_STATE), "modify_qp to ERR");
}

std::vector<ibv_wc> session::completions() {
  constexpr int most = 16;
  std::vector<ibv_wc> done(most);
  int n = 0;
  do {
    if (over()) return {};
    n = device_.wait_cq(cq_, most, done.data(), look_ps());
    hosts::require(n, "poll_cq");
    if (n == 0) watch_->look();
  } while (n == 0);
  watch_->progress();
  done.resize(static_cast<std::size_t>(n));
  for (const ibv_wc& wc : done) require_success(wc, o_.meeting != perftest_meeting::cm);
  return done;
}

void session::report_memory(application_result& r, bool of_requests) const {
  if (timed()) return;
  for (const lane& l : lanes_) {
    boost::crc_32_type sum;
    const std::uint64_t used = std::min<std::uint64_t>(places_.count, iterations_);
    const app_buffer& b = of_requests ? l.out : l.in;
    for (std::uint64_t i = 0; i < used; ++i) sum.process_bytes(b.at(places_.offset(i)), size_);
    r.memory.push_back({l.own.qpn, l.peer.qpn, sum.checksum()});
  }
}

report session::bandwidth(std::uint64_t messages, sim::time_ps took) const {
  const double per_second = static_cast<double>(messages) / seconds(took);
  report b;
  b.size = size_;
  b.iterations = messages / lanes_.size();
  b.peak = b.average = per_second * size_ / mebibyte;
  b.rate = per_second * 1e-6;
  return b;
}

void session::print_bandwidth(std::uint64_t messages, sim::time_ps took) const {
  const double rate = static_cast<double>(messages) / seconds(took);
  if (!headed_)
    fmt::print(" {:>9} {:>13} {:>15} {:>14} {:>15}\n", "bytes", "iterations", "average MiB/s", "average Gb/s",
               "10^6 messages/s");
  fmt::print(" {:>9} {:>13} {:>15.2f} {:>14.4f} {:>15.6f}\n", size_, messages, rate * size_ / mebibyte,
             rate * size_ * 8e-9, rate * 1e-6);
  std::fflush(stdout);
  headed_ = true;
}

void session::print_latency(std::vector<sim::time_ps> times) const {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto total = std::accumulate(times.begin(), times.end(), sim::time_ps{0});
  if (!headed_)
    fmt::print(" {:>9} {:>13} {:>10} {:>10} {:>12} {:>10} {:>10}\n", "bytes", "iterations", "least us", "most us",
               "typical us", "mean us", "99 % us");
  fmt::print(" {:>9} {:>13} {:>10.2f} {:>10.2f} {:>12.2f} {:>10.2f} {:>10.2f}\n", size_, times.size(),
             us(times.front()), us(times.back()), us(times[times.size() / 2]), us(total / times.size()),
             us(times[times.size() * 99 / 100]));
  std::fflush(stdout);
  headed_ = true;
}

void session::run(application_result& r) {
  meet();
  r.local = fmt::format("QPN 0x{:06x}, GID {}", lanes_.front().own.qpn, wire::to_string(lanes_.front().own.gid));
  r.remote = fmt::format("QPN 0x{:06x}, GID {}", lanes_.front().peer.qpn, wire::to_string(lanes_.front().peer.gid));
  fmt::print("  local address:  {}\n  remote address: {}\n", r.local, r.remote);
  std::fflush(stdout);
  test(r);
  r.message_bytes = size_;
  r.places = {places_.stride, places_.count};
  sc_core::wait(sc_core::sc_time::from_value(linger_ps));
  if (o_.meeting == perftest_meeting::tcp) return;
  part();
  sc_core::wait(sc_core::sc_time::from_value(linger_ps));
}

}  // namespace rnic::serve::perftest
