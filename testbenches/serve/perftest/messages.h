// SPDX-License-Identifier: Apache-2.0
// Tests of SEND: ib_send_bw and ib_send_lat.
#pragma once

#include <vector>

#include "testbenches/serve/perftest/session.h"

namespace rnic::serve::perftest {

class messages : public session {
 public:
  using session::session;

 private:
  void test(application_result& r) override;
  void post_receive_of(lane& l);
  void post_receives();
  void take_completions(application_result& r);
  void take_received(const ibv_wc& wc, application_result& r);
  void stream(application_result& r);
  void in_turns(application_result& r);

  app_buffer headers_;  // of datagrams: nobody looks at them
};

}  // namespace rnic::serve::perftest
