// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm_applications.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "model/abi/endian.h"
#include "model/wire/ethernet.h"
#include "testbenches/bench/connection.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

// As in the tools of rdma-core.
constexpr std::uint16_t rping_port = 7174, ucmatose_port = 7471, udaddy_port = 7174;
constexpr std::uint32_t rping_size = 64, message_size = 100;
constexpr unsigned message_count = 10;
constexpr std::uint32_t udp_qkey = 0x01234567;  // RDMA_UDP_QKEY
constexpr std::uint32_t multicast_qpn = 0xffffff;
constexpr std::uint64_t id_receive = 1, id_send = 2, id_rdma = 3;
constexpr std::uint64_t join_ps = 3 * sim::ps_per_s;  // before the first datagram to a group

/// What all of them have.
class program {
 public:
  program(served_host& host, cm_service& service, const cm_application_options& o)
      : host_(host), device_(host.device()), service_(service), o_(o), objects_(device_) {}

 protected:
  gid_bytes own() const { return device_.port(1).gids[static_cast<std::size_t>(o_.route.gid_index)].id; }
  std::uint16_t port(std::uint16_t tools) const { return o_.port != 0 ? o_.port : tools; }
  std::uint32_t size(std::uint32_t tools) const { return o_.size != 0 ? o_.size : tools; }
  unsigned count(unsigned tools) const { return o_.count != 0 ? o_.count : tools; }
  queue_pair* make_qp(ibv_qp_type type, completion_queue* send, completion_queue* receive, unsigned depth) {
    ibv_qp_init_attr init{};
    init.send_cq = send;
    init.recv_cq = receive;
    init.qp_type = type;
    init.cap.max_send_wr = init.cap.max_recv_wr = depth;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    return objects_.qp(init);
  }

  served_host& host_;
  device& device_;
  cm_service& service_;
  const cm_application_options& o_;
  verbs_objects objects_;
};

/// A service that is listened to as long as this lives.
class listener {
 public:
  listener(cm_service& service, std::uint64_t service_id) : service_(service), service_id_(service_id) {
    if (!service.manager().listen(service_id)) throw std::runtime_error("somebody listens there already");
  }
  ~listener() { stop(); }
  void stop() { service_.manager().stop_listening(service_id_); }

 private:
  cm_service& service_;
  std::uint64_t service_id_;
};

// ---------------------------------------------------------------- rping

/// What one end tells of its memory.
struct memory_info {
  static constexpr std::uint32_t bytes = 16;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0, size = 0;

  void put(std::uint8_t* to) const {
    abi::store64(to, 0, address);
    abi::store32(to, 8, rkey);
    abi::store32(to, 12, size);
  }
  static memory_info get(const std::uint8_t* from) {
    return {abi::load64(from), abi::load32(from, 8), abi::load32(from, 12)};
  }
};

/// The tool's text of ping number `ping`: a line, and letters that begin with another one each time.
std::string ping_text(std::uint64_t ping, std::uint32_t size) {
  constexpr char first = 'A', last = 'z';
  constexpr unsigned letters = last - first + 1;
  std::string text = fmt::format("rdma-ping-{}: ", ping);
  for (unsigned i = static_cast<unsigned>(ping % letters); text.size() < size; i = (i + 1) % letters)
    text.push_back(static_cast<char>(first + i));
  text.resize(size);
  text[size - 1] = '\0';
  return text;
}

class rping : private program {
 public:
  using program::program;
  void run(application_result& r);

 private:
  static constexpr std::uint32_t longest = 65536;
  void set_up(std::uint32_t bytes);
  void serve(rdma_connection& c, application_result& r);
  void ask(rdma_connection& c, application_result& r);
  bool take(rdma_connection& c, std::uint64_t id);
  bool take_info(rdma_connection& c);
  void rdma(rdma_connection& c, ibv_wr_opcode opcode, const memory_info& at, std::uint32_t bytes);
  void tell(rdma_connection& c, const memory_info& info);
  void count_wrong(const std::uint8_t* data, const std::string& text, application_result& r) const;

  completion_queue* cq_ = nullptr;
  queue_pair* qp_ = nullptr;
  app_buffer said_, heard_, data_, start_;
  memory_info theirs_;
  unsigned told_ = 0;
  std::array<unsigned, 4> done_{};  // completions that came before they were waited for
};

void rping::set_up(std::uint32_t bytes) {
  cq_ = objects_.cq(64);
  qp_ = make_qp(IBV_QPT_RC, cq_, cq_, 16);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  said_ = objects_.buffer(memory_info::bytes);
  heard_ = objects_.buffer(memory_info::bytes);
  data_ = objects_.buffer(bytes, access);
  start_ = objects_.buffer(bytes, access);
}

/// Waits for a completion of this kind; false when the peer has released the connection.
bool rping::take(rdma_connection& c, std::uint64_t id) {
  while (done_[id] == 0) {
    const auto wc = c.next(cq_);
    if (!wc) return false;
    if (wc->wr_id == id_receive && wc->byte_len != memory_info::bytes)
      throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc->byte_len, memory_info::bytes));
    if (wc->wr_id == id_receive) {
      theirs_ = memory_info::get(heard_.at());
      post_receive(device_, qp_, id_receive, heard_.sge(memory_info::bytes));
    }
    ++done_[wc->wr_id];
  }
  --done_[id];
  return true;
}

bool rping::take_info(rdma_connection& c) { return take(c, id_receive); }

void rping::rdma(rdma_connection& c, ibv_wr_opcode opcode, const memory_info& at, std::uint32_t bytes) {
  ibv_send_wr wr{};
  wr.wr_id = id_rdma;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = at.address;
  wr.wr.rdma.rkey = at.rkey;
  post(device_, c.qp(), wr, data_.sge(bytes));
}

void rping::tell(rdma_connection& c, const memory_info& info) {
  if (told_++ != 0 && !take(c, id_send)) return;  // the buffer is in use until then
  info.put(said_.at());
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  post(device_, c.qp(), wr, said_.sge(memory_info::bytes));
}

void rping::count_wrong(const std::uint8_t* data, const std::string& text, application_result& r) const {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (data[i] != static_cast<std::uint8_t>(text[i])) ++r.wrong_bytes;
}

/// Reads the client's text, says so, writes it where the client then says, and says so.
void rping::serve(rdma_connection& c, application_result& r) {
  for (;;) {
    if (!take_info(c)) return;
    const std::uint32_t bytes = theirs_.size;
    if (bytes == 0 || bytes > longest) throw peer_failure(fmt::format("the client offers {} bytes", bytes));
    rdma(c, IBV_WR_RDMA_READ, theirs_, bytes);
    if (!take(c, id_rdma)) return;
    count_wrong(data_.at(), ping_text(r.received, bytes), r);
    ++r.received;
    tell(c, {});
    if (!take_info(c)) return;
    if (theirs_.size < bytes) throw peer_failure("the client's second buffer is shorter than its first");
    rdma(c, IBV_WR_RDMA_WRITE, theirs_, bytes);
    if (!take(c, id_rdma)) return;
    tell(c, {});
    ++r.sent;
  }
}

void rping::ask(rdma_connection& c, application_result& r) {
  const std::uint32_t bytes = size(rping_size);
  const auto released = [] { return peer_failure("the server released the connection"); };
  for (unsigned ping = 0; ping < count(message_count); ++ping) {
    const std::string text = ping_text(ping, bytes);
    std::memcpy(start_.at(), text.data(), bytes);
    std::memset(data_.at(), 0, bytes);
    tell(c, {start_.region->iova, start_.region->rkey, bytes});
    ++r.sent;
    if (!take_info(c)) throw released();
    tell(c, {data_.region->iova, data_.region->rkey, bytes});
    if (!take_info(c)) throw released();
    count_wrong(data_.at(), text, r);
    ++r.received;
  }
}

void rping::run(application_result& r) {
  rdma_connection c(host_, service_, o_.route);
  set_up(o_.client ? size(rping_size) : longest);
  if (o_.client) {
    c.prepare(qp_);
    post_receive(device_, qp_, id_receive, heard_.sge(memory_info::bytes));
    c.connect(o_.peer, port(rping_port));
    ask(c, r);
    c.disconnect();
    return;
  }
  listener here(service_, cm::service_id(cm::port_space::tcp, port(rping_port)));
  const auto request = wait_for_client(service_);
  here.stop();
  c.prepare(qp_);
  post_receive(device_, qp_, id_receive, heard_.sge(memory_info::bytes));
  c.accept(request);
  serve(c, r);
}

// ---------------------------------------------------------------- ucmatose

class ucmatose : private program {
 public:
  using program::program;
  void run(application_result& r);

 private:
  struct node {
    std::unique_ptr<rdma_connection> connection;
    completion_queue *send_cq = nullptr, *receive_cq = nullptr;
    app_buffer out, in;
  };
  node make_node();
  void send(application_result& r);
  void receive(application_result& r);
  ibv_wc one(node& n, completion_queue* cq);

  std::vector<node> nodes_;
};

ucmatose::node ucmatose::make_node() {
  node n;
  const unsigned depth = count(message_count);
  n.send_cq = objects_.cq(depth);
  n.receive_cq = objects_.cq(depth);
  n.out = objects_.buffer(size(message_size), IBV_ACCESS_LOCAL_WRITE, 0x5a);
  n.in = objects_.buffer(size(message_size));
  n.connection = std::make_unique<rdma_connection>(host_, service_, o_.route);
  queue_pair* qp = make_qp(IBV_QPT_RC, n.send_cq, n.receive_cq, depth);
  n.connection->prepare(qp);
  for (unsigned i = 0; i < depth; ++i) post_receive(device_, qp, id_receive, n.in.sge(size(message_size)));
  return n;
}

ibv_wc ucmatose::one(node& n, completion_queue* cq) {
  const auto wc = n.connection->next(cq);
  if (!wc) throw peer_failure("the peer released the connection before all messages were exchanged");
  return *wc;
}

void ucmatose::send(application_result& r) {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  for (node& n : nodes_)
    for (unsigned i = 0; i < count(message_count); ++i)
      post(device_, n.connection->qp(), wr, n.out.sge(size(message_size)));
  for (node& n : nodes_)
    for (unsigned i = 0; i < count(message_count); ++i, ++r.sent) one(n, n.send_cq);
}

void ucmatose::receive(application_result& r) {
  for (node& n : nodes_)
    for (unsigned i = 0; i < count(message_count); ++i, ++r.received)
      if (const ibv_wc wc = one(n, n.receive_cq); wc.byte_len != size(message_size))
        throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, size(message_size)));
}

/// The server sends first, then the client; the server releases the connections.
void ucmatose::run(application_result& r) {
  if (o_.client) {
    for (unsigned i = 0; i < o_.connections; ++i) nodes_.push_back(make_node());
    for (node& n : nodes_) n.connection->connect(o_.peer, port(ucmatose_port));
    receive(r);
    send(r);
    for (node& n : nodes_) n.connection->wait_released();
    return;
  }
  listener here(service_, cm::service_id(cm::port_space::tcp, port(ucmatose_port)));
  while (nodes_.size() < o_.connections) {
    const auto request = wait_for_client(service_);
    nodes_.push_back(make_node());
    nodes_.back().connection->accept(request);
  }
  here.stop();
  send(r);
  receive(r);
  for (node& n : nodes_) n.connection->disconnect();
}

// ---------------------------------------------------------------- datagrams

class datagrams : protected program {
 public:
  using program::program;

 protected:
  struct node {
    completion_queue* cq = nullptr;
    queue_pair* qp = nullptr;
    address_handle* ah = nullptr;
    std::uint32_t remote_qpn = 0, remote_qkey = udp_qkey;
    app_buffer out, in;
  };
  node make_node(bool receives);
  void send(node& n, application_result& r);
  void take(node& n, application_result& r);
  void answer_to(node& n, const ibv_wc& wc);
};

datagrams::node datagrams::make_node(bool receives) {
  node n;
  const unsigned depth = count(message_count);
  const std::uint32_t bytes = size(message_size) + grh_bytes;
  n.cq = objects_.cq(2 * depth);
  n.qp = make_qp(IBV_QPT_UD, n.cq, n.cq, depth);
  n.out = objects_.buffer(bytes, IBV_ACCESS_LOCAL_WRITE, 0x5a);
  n.in = objects_.buffer(bytes);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = udp_qkey;
  bench::require(device_.modify_qp(n.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
                 "modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  bench::require(device_.modify_qp(n.qp, &attr, IBV_QP_STATE), "modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  bench::require(device_.modify_qp(n.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "modify_qp to RTS");
  for (unsigned i = 0; receives && i < depth; ++i) post_receive(device_, n.qp, id_receive, n.in.sge(bytes));
  return n;
}

void datagrams::send(node& n, application_result& r) {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = __builtin_bswap32(n.qp->qp_num);
  wr.wr.ud.ah = n.ah;
  wr.wr.ud.remote_qpn = n.remote_qpn;
  wr.wr.ud.remote_qkey = n.remote_qkey;
  for (unsigned i = 0; i < count(message_count); ++i) post(device_, n.qp, wr, n.out.sge(size(message_size)));
  for (unsigned i = 0; i < count(message_count); ++i, ++r.sent) next_completion(device_, n.cq, o_.route.patience_ps);
}

/// The sender of a datagram: address from the headers, number from the immediate data.
void datagrams::answer_to(node& n, const ibv_wc& wc) {
  cm::address from;
  if ((wc.wc_flags & IBV_WC_WITH_IMM) == 0) throw peer_failure("a datagram came without the sender's number");
  if (!service_.find_own(n.in.at(), from)) throw peer_failure("a datagram came with addresses that are not ours");
  n.ah = objects_.ah(path_to(from.gid, from.gid_index, o_.route.service_level, 64), device_.last_source(*n.cq));
  n.remote_qpn = __builtin_bswap32(wc.imm_data) & 0xffffff;
}

void datagrams::take(node& n, application_result& r) {
  for (unsigned i = 0; i < count(message_count); ++i, ++r.received) {
    const ibv_wc wc = next_completion(device_, n.cq, o_.route.patience_ps);
    if (wc.byte_len != size(message_size) + grh_bytes)
      throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, size(message_size)));
    if (n.ah == nullptr && o_.app == "udaddy") answer_to(n, wc);
  }
}

class udaddy : private datagrams {
 public:
  using datagrams::datagrams;
  void run(application_result& r);

 private:
  void ask(node& n);
  void serve(application_result& r);
};

/// Where the service's queue pair is.
void udaddy::ask(node& n) {
  const cm::address peer = find_peer(host_, o_.peer, o_.route);
  cm::service_data service;
  service.service_id = cm::service_id(cm::port_space::udp, port(udaddy_port));
  const auto id =
      service_.manager().ask_service(peer, service, addressed_private(own(), o_.peer, udaddy_port), service_.now_ps());
  const auto e = service_.wait_of(id, o_.route.patience_ps);
  if (!e || e->what != cm::event::kind::service_reply) throw peer_failure("the peer does not answer");
  if (e->message.service.status != 0)
    throw peer_failure(fmt::format("the peer refused: status {}", e->message.service.status));
  n.remote_qpn = e->message.service.qpn;
  n.remote_qkey = e->message.service.qkey;
  n.ah = objects_.ah(path_to(peer.gid, peer.gid_index, o_.route.service_level, 64), peer.mac);
}

void udaddy::serve(application_result& r) {
  listener here(service_, cm::service_id(cm::port_space::udp, port(udaddy_port)));
  std::vector<node> nodes;
  while (nodes.size() < o_.connections) {
    const auto request = wait_for_client(service_);
    nodes.push_back(make_node(true));
    cm::service_data reply;
    reply.qpn = nodes.back().qp->qp_num;
    reply.qkey = udp_qkey;
    service_.manager().answer_service(request.id, reply, {});
  }
  here.stop();
  for (node& n : nodes) take(n, r);
  for (node& n : nodes) send(n, r);
}

void udaddy::run(application_result& r) {
  if (!o_.client) return serve(r);
  std::vector<node> nodes;
  for (unsigned i = 0; i < o_.connections; ++i) {
    nodes.push_back(make_node(true));
    ask(nodes.back());
  }
  for (node& n : nodes) send(n, r);
  for (node& n : nodes) take(n, r);
}

class mckey : private datagrams {
 public:
  using datagrams::datagrams;
  void run(application_result& r);
};

void mckey::run(application_result& r) {
  node n = make_node(!o_.client);
  if (o_.client) {
    n.ah = objects_.ah(path_to(o_.peer, o_.route.gid_index, o_.route.service_level, 64), *implied_mac(o_.peer));
    n.remote_qpn = multicast_qpn;
    sc_core::wait(sc_core::sc_time::from_value(join_ps));
    return send(n, r);
  }
  ibv_gid group{};
  std::copy(o_.peer.begin(), o_.peer.end(), group.raw);
  bench::require(device_.attach_mcast(n.qp, &group), "attach_mcast");
  fmt::print("joined {}\n", wire::to_string(o_.peer));
  std::fflush(stdout);
  try {
    take(n, r);
  } catch (...) {
    device_.detach_mcast(n.qp, &group);
    throw;
  }
  device_.detach_mcast(n.qp, &group);
}

template <class App>
void run_app(served_host& host, cm_service& service, const cm_application_options& o, application_result& r) {
  App(host, service, o).run(r);
}

}  // namespace

application_result run_cm_application(served_host& host, cm_service& service, const cm_application_options& o) {
  application_result r;
  const auto start = service.now_ps();
  try {
    if (o.app == "rping") run_app<rping>(host, service, o, r);
    if (o.app == "ucmatose") run_app<ucmatose>(host, service, o, r);
    if (o.app == "udaddy") run_app<udaddy>(host, service, o, r);
    if (o.app == "mckey") run_app<mckey>(host, service, o, r);
    r.took_ps = service.now_ps() - start;
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes arrived changed", r.wrong_bytes);
    sc_core::wait(sc_core::sc_time::from_value(linger_ps));
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  service.clear();
  return r;
}

}  // namespace rnic::serve
