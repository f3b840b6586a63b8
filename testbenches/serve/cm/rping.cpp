// SPDX-License-Identifier: Apache-2.0
// rping: READ of what the client has, and WRITE back to it.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "host_driver/hosts/connection.h"
#include "model/abi/endian.h"
#include "testbenches/serve/cm/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint32_t rping_size = 64;
constexpr std::uint64_t id_rdma = 3;

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

class rping : private cm_program, public arrival {
 public:
  using cm_program::cm_program;
  /// As server: ready for a REQ.
  void prepare();
  rdma_connection& connection() override { return *connection_; }
  void serve(application_result& r);
  void run_client(application_result& r);

 private:
  static constexpr std::uint32_t longest = 65536;
  void set_up(std::uint32_t bytes);
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
  std::unique_ptr<rdma_connection> connection_;
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
void rping::serve(application_result& r) {
  rdma_connection& c = *connection_;
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

void rping::prepare() {
  set_up(o_.client ? size(rping_size) : longest);
  connection_ = std::make_unique<rdma_connection>(host_, service_, o_.route);
  connection_->prepare(qp_);
  post_receive(device_, qp_, id_receive, heard_.sge(memory_info::bytes));
}

void rping::run_client(application_result& r) {
  prepare();
  connection_->connect(o_.peer, port(rping_port));
  ask(*connection_, r);
  connection_->disconnect();
}

}  // namespace

std::unique_ptr<arrival> rping_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  auto guest = std::make_unique<rping>(host, service, o);
  guest->prepare();
  return guest;
}

void run_rping(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
               application_result& r) {
  if (o.client) return rping(host, service, o).run_client(r);
  const auto client = next_as<rping>(*clients);
  clients->enough();
  client->serve(r);
}

}  // namespace rnic::serve
