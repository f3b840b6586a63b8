// SPDX-License-Identifier: Apache-2.0
// What carries the words of the perftest tools: TCP, or a connection of the connection manager.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "testbenches/serve/cm/rdma_connection.h"
#include "testbenches/serve/cm/reception.h"
#include "testbenches/serve/pingpong/address_exchange.h"

namespace rnic::serve::perftest {

/// Functions are called in an SC_THREAD. False or nothing: the peer is gone, or did not answer within the time.
class conversation {
 public:
  conversation() = default;
  virtual ~conversation() = default;
  conversation(const conversation&) = delete;
  conversation& operator=(const conversation&) = delete;

  virtual bool send(const std::string& bytes) = 0;
  /// Exactly `bytes` bytes.
  /// `meanwhile` is called every few milliseconds of waiting; what it throws ends that.
  virtual std::optional<std::string> receive(std::size_t bytes, sim::time_ps timeout_ps,
                                             const std::function<void()>& meanwhile) = 0;
  /// Whether the peer has ended it.
  virtual bool peer_closed() = 0;
  /// Whether queue pairs are told as text, with a last word behind all others.
  virtual bool is_text() const = 0;
  /// All has been said; the client goes first.
  virtual void end(bool /*client*/) {}
};

class tcp_conversation : public conversation {
 public:
  /// Connected.
  explicit tcp_conversation(address_exchange& socket) : socket_(socket) {}
  bool send(const std::string& bytes) override { return socket_.send(bytes); }
  std::optional<std::string> receive(std::size_t bytes, sim::time_ps timeout_ps,
                                     const std::function<void()>& meanwhile) override {
    return socket_.receive(bytes, timeout_ps, meanwhile);
  }
  bool peer_closed() override { return socket_.peer_closed(); }
  bool is_text() const override { return true; }

 private:
  address_exchange& socket_;
};

/// A word is a SEND on a queue pair of its own.
class cm_conversation : public conversation, public arrival {
 public:
  cm_conversation(served_host& host, cm_service& service, const rdma_route& route);
  /// The queue pair waits for its connection.
  rdma_connection& connection() override { return connection_; }

  bool send(const std::string& bytes) override;
  std::optional<std::string> receive(std::size_t bytes, sim::time_ps timeout_ps,
                                     const std::function<void()>& meanwhile) override;
  bool peer_closed() override { return connection_.released(); }
  bool is_text() const override { return false; }
  void end(bool client) override;

 private:
  static constexpr std::uint32_t longest = 56;  ///< what the tools give room for
  std::optional<ibv_wc> next(host_driver::completion_queue* cq, sim::time_ps timeout_ps,
                             const std::function<void()>& meanwhile = {});
  void post_next();

  host_driver::device& device_;
  cm_service& service_;
  rdma_route route_;
  verbs_objects objects_;
  host_driver::completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;
  app_buffer out_, in_;
  rdma_connection connection_;
};

}  // namespace rnic::serve::perftest
