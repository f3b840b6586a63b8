// SPDX-License-Identifier: Apache-2.0
// Work requests of every opcode.
#include <fmt/format.h>

#include <deque>
#include <vector>

#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using namespace host_driver;
using nlohmann::json;

namespace {

constexpr std::size_t most_requests = 1024, most_sges = 128;

/// Where a request's bytes lie: in a region of ours, or wherever it says, for nothing of it needs to be right.
ibv_sge read_sge(session& s, fields f) {
  ibv_sge sge{};
  const region* r = f.has("mr") ? &s.mrs.at(f) : nullptr;
  const std::uint64_t offset = f.number("offset", 0, fields::any64, 0);
  if (r == nullptr && offset != 0) f.wrong("offset", "is of an mr");
  sge.addr =
      r != nullptr ? f.number("addr", 0, fields::any64, r->mr->iova + offset) : f.number("addr", 0, fields::any64);
  sge.lkey = static_cast<std::uint32_t>(r != nullptr ? f.number("lkey", 0, fields::any32, r->mr->lkey)
                                                     : f.number("lkey", 0, fields::any32));
  sge.length = static_cast<std::uint32_t>(
      r != nullptr ? f.number("length", 0, fields::any32, r->length - std::min<std::uint64_t>(offset, r->length))
                   : f.number("length", 0, fields::any32));
  f.end();
  return sge;
}

std::vector<ibv_sge> read_sges(session& s, fields& f) {
  std::vector<ibv_sge> all;
  if (!f.has("sge")) return all;
  for (fields& one : f.objects("sge", 0, most_sges)) all.push_back(read_sge(s, one));
  return all;
}

/// Requests that are posted together, with all that they point to.
class send_list {
 public:
  send_list(session& s, const queue_pair& qp) : session_(s), qp_(qp) {}
  void add(fields& f);
  ibv_send_wr* first() { return all_.empty() ? nullptr : all_.front(); }
  std::size_t index_of(const ibv_send_wr* wr) const {
    return static_cast<std::size_t>(std::find(all_.begin(), all_.end(), wr) - all_.begin());
  }
  std::size_t size() const { return all_.size(); }

 private:
  ibv_send_wr& make(fields& f, int opcode);
  void read_remote(fields& f, int opcode, ibv_send_wr& wr);
  void read_bind(fields& f, ibv_send_wr& wr);

  session& session_;
  const queue_pair& qp_;
  std::deque<ibv_send_wr> plain_;
  std::deque<masked_atomic_wr> masked_;
  std::deque<std::vector<ibv_sge>> sges_;
  std::vector<ibv_send_wr*> all_;
};

ibv_send_wr& send_list::make(fields& f, int opcode) {
  if (opcode < masked_opcodes) {
    plain_.push_back(ibv_send_wr{});
    plain_.back().opcode = static_cast<ibv_wr_opcode>(opcode);
    return plain_.back();
  }
  masked_.emplace_back(static_cast<driver_opcode>(opcode - masked_opcodes));
  masked_.back().compare_add_mask = f.number("compare_add_mask", 0, fields::any64, 0);
  masked_.back().swap_mask = f.number("swap_mask", 0, fields::any64, 0);
  return masked_.back();
}

void send_list::read_bind(fields& f, ibv_send_wr& wr) {
  wr.bind_mw.mw = session_.mws.at(f);
  wr.bind_mw.rkey = static_cast<std::uint32_t>(f.number("rkey", 0, fields::any32));
  ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  info.length = f.number("length", 0, fields::any64, 0);
  info.addr = f.number("addr", 0, fields::any64, 0);
  if (info.length != 0 || f.has("mr")) info.mr = session_.mrs.at(f).mr;
  info.mw_access_flags = static_cast<unsigned>(f.words("access", access_rights));
}

void send_list::read_remote(fields& f, int opcode, ibv_send_wr& wr) {
  const bool atomic =
      opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode >= masked_opcodes;
  const bool rdma = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_RDMA_READ;
  if (!atomic && !rdma) return;
  const std::uint64_t address = f.number("remote_addr", 0, fields::any64);
  const auto rkey = static_cast<std::uint32_t>(f.number("rkey", 0, fields::any32));
  if (rdma) {
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    return;
  }
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = f.number("compare_add", 0, fields::any64);
  wr.wr.atomic.swap = f.number("swap", 0, fields::any64, 0);
}

void send_list::add(fields& f) {
  const int opcode = f.word("opcode", send_opcodes);
  ibv_send_wr& wr = make(f, opcode);
  wr.wr_id = f.number("wr_id", 0, fields::any64, 0);
  wr.send_flags = static_cast<unsigned>(f.words("flags", send_flags));
  if (opcode == IBV_WR_BIND_MW) {
    read_bind(f, wr);
  } else {
    sges_.push_back(read_sges(session_, f));
    wr.sg_list = sges_.back().data();
    wr.num_sge = static_cast<int>(sges_.back().size());
  }
  read_remote(f, opcode, wr);
  if (opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
    wr.imm_data = __builtin_bswap32(static_cast<std::uint32_t>(f.number("imm", 0, fields::any32)));
  if (opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV)
    wr.invalidate_rkey = static_cast<std::uint32_t>(f.number("invalidate_rkey", 0, fields::any32));
  if (qp_.qp_type == IBV_QPT_UD) {
    wr.wr.ud.ah = session_.ahs.at(f);
    wr.wr.ud.remote_qpn = static_cast<std::uint32_t>(f.number("remote_qpn", 0, 0xffffff));
    wr.wr.ud.remote_qkey = static_cast<std::uint32_t>(f.number("remote_qkey", 0, fields::any32));
  }
  if (qp_.qp_type == IBV_QPT_XRC_SEND)
    wr.qp_type.xrc.remote_srqn = static_cast<std::uint32_t>(f.number("remote_srqn", 0, 0xffffff));
  // The processor reads inline data, wherever it is said to be.
  if ((wr.send_flags & IBV_SEND_INLINE) != 0)
    for (int i = 0; i < wr.num_sge; ++i)
      if (!session_.owns(wr.sg_list[i].addr, wr.sg_list[i].length))
        f.wrong("sge", fmt::format("number {} is inline and lies in no region of this client", i));
  f.end();
  if (!all_.empty()) all_.back()->next = &wr;
  all_.push_back(&wr);
}

/// IBA volume 1, table 91: posting is an immediate error in the states before.
void require_posting(fields& f, const queue_pair& qp, bool send) {
  const bool early = qp.state == IBV_QPS_RESET || (send && (qp.state == IBV_QPS_INIT || qp.state == IBV_QPS_RTR));
  if (early)
    f.wrong("qp", fmt::format("is in {}: expected {} or later", said(qp_states, qp.state), send ? "rts" : "init"));
}

[[noreturn]] void not_posted(const char* verb, int error, std::size_t posted) {
  failed(fmt::format("{}: requests[{}]", verb, posted).c_str(), -error);
}

json post_send(session& s, fields& f) {
  const auto qp = s.qps.at(f);
  require_posting(f, *qp, true);
  send_list list(s, *qp);
  for (fields& one : f.objects("requests", 1, most_requests)) list.add(one);
  f.end();
  ibv_send_wr* bad = nullptr;
  const int error = s.device.post_send(qp, list.first(), &bad);
  if (error != 0) not_posted("post_send", error, list.index_of(bad));
  return {{"posted", list.size()}};
}

/// Requests to receive, `copies` times over.
struct receive_list {
  std::deque<std::vector<ibv_sge>> sges;
  std::vector<ibv_recv_wr> all;

  receive_list(session& s, fields& f) {
    const std::uint64_t copies = f.number("copies", 1, most_requests, 1);
    auto requests = f.objects("requests", 1, most_requests);
    for (fields& one : requests) {
      ibv_recv_wr wr{};
      wr.wr_id = one.number("wr_id", 0, fields::any64, 0);
      sges.push_back(read_sges(s, one));
      one.end();
      wr.sg_list = sges.back().data();
      wr.num_sge = static_cast<int>(sges.back().size());
      all.push_back(wr);
    }
    const std::size_t once = all.size();
    for (std::uint64_t c = 1; c < copies; ++c)
      for (std::size_t i = 0; i < once; ++i) all.push_back(all[i]);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) all[i].next = &all[i + 1];
  }
};

json post_recv(session& s, fields& f) {
  const auto qp = s.qps.at(f);
  require_posting(f, *qp, false);
  receive_list list(s, f);
  f.end();
  ibv_recv_wr* bad = nullptr;
  const int error = s.device.post_recv(qp, list.all.data(), &bad);
  if (error != 0) not_posted("post_recv", error, static_cast<std::size_t>(bad - list.all.data()));
  return {{"posted", list.all.size()}};
}

json post_srq_recv(session& s, fields& f) {
  const auto srq = s.srqs.at(f);
  receive_list list(s, f);
  f.end();
  ibv_recv_wr* bad = nullptr;
  const int error = s.device.post_srq_recv(srq, list.all.data(), &bad);
  if (error != 0) not_posted("post_srq_recv", error, static_cast<std::size_t>(bad - list.all.data()));
  return {{"posted", list.all.size()}};
}

/// A window of type 1, whose key changes with the binding.
json bind_mw(session& s, fields& f) {
  const auto qp = s.qps.at(f);
  require_posting(f, *qp, true);
  const auto mw = s.mws.at(f);
  ibv_mw_bind bind{};
  bind.wr_id = f.number("wr_id", 0, fields::any64, 0);
  bind.send_flags = static_cast<unsigned>(f.words("flags", send_flags));
  bind.bind_info.length = f.number("length", 0, fields::any64, 0);
  bind.bind_info.addr = f.number("addr", 0, fields::any64, 0);
  if (bind.bind_info.length != 0 || f.has("mr")) bind.bind_info.mr = s.mrs.at(f).mr;
  bind.bind_info.mw_access_flags = static_cast<unsigned>(f.words("access", access_rights));
  f.end();
  require_verb(s.device.bind_mw(qp, mw, &bind), "bind_mw");
  return {{"rkey", mw->rkey}};
}

}  // namespace

void add_posting_commands(command_table& table) {
  table.insert(
      {{"post_send", post_send}, {"post_recv", post_recv}, {"post_srq_recv", post_srq_recv}, {"bind_mw", bind_mw}});
}

}  // namespace rnic::serve::script
