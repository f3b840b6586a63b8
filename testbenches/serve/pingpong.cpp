// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/pingpong.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>

#include "model/wire/ethernet.h"
#include "testbenches/serve/application.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

// As in the examples of rdma-core.
constexpr std::uint64_t id_receive = 1, id_send = 2;
constexpr std::uint8_t contents = 0x7b;
constexpr std::uint32_t qkey = 0x11111111;
constexpr std::uint32_t grh_bytes = 40;
constexpr unsigned ack_timeout = 14, retries = 7, rnr_retries = 7, rnr_timer = 12;
constexpr std::uint64_t exchange_ps = 20 * sim::ps_per_s;
/// A peer that missed our last acknowledgement asks again: the queue pair stays until it had the time to.
constexpr std::uint64_t linger_ps = 300'000 * sim::ps_per_us;

class pingpong {
 public:
  pingpong(served_host& host, address_exchange& exchange, const pingpong_options& o)
      : host_(host), device_(host.device()), exchange_(exchange), o_(o) {}
  ~pingpong() { tear_down(); }
  void run(pingpong_result& r);

 private:
  bool datagrams() const { return o_.type == IBV_QPT_UD; }
  std::uint32_t header() const { return datagrams() ? grh_bytes : 0; }
  void make_queue_pair();
  void meet_as_client();
  void meet_as_server();
  void say_address();
  void hear_address();
  void connect();
  void to_ready_to_receive(const mac_address& mac, const ibv_ah_attr& path);
  void to_ready_to_send();
  void post_receives(unsigned count);
  void post_send();
  void exchange_messages(pingpong_result& r);
  void check(const ibv_wc& wc, pingpong_result& r);
  void tear_down();

  served_host& host_;
  device& device_;
  address_exchange& exchange_;
  const pingpong_options& o_;
  protection_domain* pd_ = nullptr;
  completion_queue* cq_ = nullptr;
  queue_pair* qp_ = nullptr;
  address_handle* ah_ = nullptr;
  memory_region* mr_ = nullptr;
  bus_if::dma_memory buffer_{};
  peer_address own_, peer_;
};

void pingpong::make_queue_pair() {
  pd_ = made(device_.alloc_pd(), "alloc_pd");
  buffer_ = device_.allocate_buffer(std::max<std::size_t>(o_.size + header(), 1));
  if (buffer_.pointer == nullptr) throw std::runtime_error("allocate_buffer: no host memory");
  std::memset(buffer_.pointer, contents, o_.size + header());
  mr_ = made(device_.reg_mr(pd_, buffer_.pointer, std::max<std::size_t>(o_.size + header(), 1), IBV_ACCESS_LOCAL_WRITE),
             "reg_mr");
  cq_ = made(device_.create_cq(static_cast<int>(o_.receive_depth) + 1), "create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = o_.type;
  init.cap.max_send_wr = 1;
  init.cap.max_recv_wr = o_.receive_depth;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  qp_ = made(device_.create_qp(pd_, &init), "create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  const int last = datagrams() ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  bench::require(device_.modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last),
                 "modify_qp to INIT");
}

void pingpong::say_address() {
  std::string message = to_text(own_);
  message.resize(address_exchange::message_bytes, '\0');
  if (!exchange_.send(message)) throw peer_failure("the peer is gone before it had our address");
}

void pingpong::hear_address() {
  const auto message = exchange_.receive(address_exchange::message_bytes, exchange_ps);
  if (!message) throw peer_failure("the peer did not tell its address");
  const auto peer = parse_peer(*message);
  if (!peer) throw peer_failure("the peer's address makes no sense");
  peer_ = *peer;
}

void pingpong::meet_as_client() {
  if (!exchange_.connect(o_.server, o_.port, o_.connect_ps))
    throw peer_failure(fmt::format("nobody answers at {}:{}", o_.server, o_.port));
  say_address();
  hear_address();
  // Before "done": the peer's messages may come as soon as it has read that.
  connect();
  if (!exchange_.send(std::string("done") + '\0')) throw peer_failure("the peer is gone before it was told to begin");
}

void pingpong::meet_as_server() {
  if (!exchange_.accept()) throw peer_failure("no client could be accepted");
  hear_address();
  connect();
  say_address();
  if (!exchange_.receive(4, exchange_ps)) throw peer_failure("the client did not say that it is ready");
}

void pingpong::connect() {
  const auto mac = host_.resolve(peer_.gid, o_.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(peer_.gid));
  ibv_ah_attr path{};
  path.is_global = 1;
  std::copy(peer_.gid.begin(), peer_.gid.end(), path.grh.dgid.raw);
  path.grh.sgid_index = static_cast<std::uint8_t>(o_.gid_index);
  path.grh.hop_limit = 1;
  path.sl = static_cast<std::uint8_t>(o_.service_level);
  path.port_num = 1;
  to_ready_to_receive(*mac, path);
  to_ready_to_send();
  if (datagrams()) ah_ = made(device_.create_ah(pd_, &path, &*mac), "create_ah");
}

void pingpong::to_ready_to_receive(const mac_address& mac, const ibv_ah_attr& path) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = bench::to_ibv_mtu(o_.mtu);
  attr.dest_qp_num = peer_.qpn;
  attr.rq_psn = peer_.psn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = rnr_timer;
  attr.ah_attr = path;
  int mask = IBV_QP_STATE;
  if (!datagrams()) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (o_.type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  bench::require(device_.modify_qp(qp_, &attr, mask, datagrams() ? nullptr : &mac), "modify_qp to RTR");
}

void pingpong::to_ready_to_send() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = own_.psn;
  attr.timeout = ack_timeout;
  attr.retry_cnt = retries;
  attr.rnr_retry = rnr_retries;
  attr.max_rd_atomic = 1;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (o_.type == IBV_QPT_RC) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  bench::require(device_.modify_qp(qp_, &attr, mask), "modify_qp to RTS");
}

void pingpong::post_receives(unsigned count) {
  ibv_sge sge{mr_->iova, o_.size + header(), mr_->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = id_receive;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  for (unsigned i = 0; i < count; ++i) bench::require(device_.post_recv(qp_, &wr, &bad), "post_recv");
}

void pingpong::post_send() {
  ibv_sge sge{mr_->iova + header(), o_.size, mr_->lkey};
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (o_.size != 0 && o_.size <= qp_->max_inline) wr.send_flags |= IBV_SEND_INLINE;
  if (datagrams()) {
    wr.wr.ud.ah = ah_;
    wr.wr.ud.remote_qpn = peer_.qpn;
    wr.wr.ud.remote_qkey = qkey;
  }
  ibv_send_wr* bad = nullptr;
  bench::require(device_.post_send(qp_, &wr, &bad), "post_send");
}

/// The last message received; the tools send what they have received, which is what everybody began with. With their
/// option -c the client begins with a zero at the start of each page.
void pingpong::check(const ibv_wc& wc, pingpong_result& r) {
  constexpr std::uint32_t page = 4096;
  if (wc.byte_len != o_.size + header())
    throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, o_.size + header()));
  const std::uint8_t* data = buffer_.pointer + header();
  for (std::uint32_t i = 0; i < o_.size; ++i)
    if (data[i] != contents && (data[i] != 0 || i % page != 0)) ++r.wrong_bytes;
}

void pingpong::exchange_messages(pingpong_result& r) {
  unsigned posted = o_.receive_depth;
  std::uint64_t pending = id_receive;
  if (!o_.server.empty()) {
    post_send();
    pending |= id_send;
  }
  while (r.received < o_.iterations || r.sent < o_.iterations) {
    ibv_wc done[2];
    const int n = device_.wait_cq(cq_, 2, done, o_.patience_ps);
    bench::require(n, "poll_cq");
    if (n == 0) throw peer_failure("the peer does not send any more");
    for (int i = 0; i < n; ++i) {
      const ibv_wc& wc = done[i];
      if (wc.status != IBV_WC_SUCCESS)
        throw peer_failure(fmt::format("work request {} ended with status {}", wc.wr_id, static_cast<int>(wc.status)));
      if (wc.wr_id == id_send) {
        ++r.sent;
      } else {
        check(wc, r);
        ++r.received;
        if (--posted <= 1) {
          post_receives(o_.receive_depth - posted);
          posted = o_.receive_depth;
        }
      }
      pending &= ~wc.wr_id;
      if (r.sent < o_.iterations && pending == 0) {
        post_send();
        pending = id_receive | id_send;
      }
    }
  }
}

void pingpong::run(pingpong_result& r) {
  make_queue_pair();
  std::mt19937_64 random(o_.seed ^ (wire::to_u64(host_.mac()) << 16) ^ qp_->qp_num);
  own_ = {0, qp_->qp_num, static_cast<std::uint32_t>(random() & 0xffffff), {}};
  own_.gid = device_.port(1).gids[static_cast<std::size_t>(o_.gid_index)].id;
  r.local = to_line(own_);
  fmt::print("  local address:  {}\n", r.local);
  std::fflush(stdout);
  post_receives(o_.receive_depth);
  if (o_.server.empty())
    meet_as_server();
  else
    meet_as_client();
  r.remote = to_line(peer_);
  fmt::print("  remote address: {}\n", r.remote);
  std::fflush(stdout);
  exchange_.close();
  const std::uint64_t start = sc_core::sc_time_stamp().value();
  exchange_messages(r);
  r.took_ps = sc_core::sc_time_stamp().value() - start;
}

void pingpong::tear_down() {
  exchange_.close();
  if (ah_ != nullptr) device_.destroy_ah(ah_);
  if (qp_ != nullptr) device_.destroy_qp(qp_);
  if (cq_ != nullptr) device_.destroy_cq(cq_);
  if (mr_ != nullptr) device_.dereg_mr(mr_);
  if (buffer_.pointer != nullptr) device_.free_buffer(buffer_);
  if (pd_ != nullptr) device_.dealloc_pd(pd_);
}

}  // namespace

pingpong_result run_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options) {
  pingpong_result r;
  pingpong p(host, exchange, options);
  try {
    p.run(r);
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes arrived changed", r.wrong_bytes);
    sc_core::wait(sc_core::sc_time::from_value(linger_ps));
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  return r;
}

}  // namespace rnic::serve
