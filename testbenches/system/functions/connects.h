// SPDX-License-Identifier: Apache-2.0
// A whole connection between two functions, by their connection managers.
#pragma once

#include <gtest/gtest.h>

#include "testbenches/system/functions/gsi_host.h"

namespace rnic::system_test {

/// From the REQ to the last byte over the connection, and its end.
inline void expect_connects(gsi_end& a, gsi_end& b) {
  b.manager.listen(some_service);
  const auto now = [&a] { return a.s.at.bus->now_ps(); };
  const auto fresh = [](gsi_end& e) {
    side s;
    s.at = e.s.at;
    s.send_cq = s.dev().create_cq(64);
    s.receive_cq = s.dev().create_cq(64);
    s.qp = hosts::make_qp(s.at, e.options, *s.send_cq, *s.receive_cq);
    return s;
  };
  link l{fresh(a), fresh(b)};
  cm::connection_data asked = request_from(a, b).connection;
  asked.qpn = l.a.qp->qp_num;
  asked.psn = 0x111;
  const cm::connection_id id = a.manager.connect(a.to(b), asked, {}, now());
  settle({&a, &b});
  const cm::event request = b.next(cm::event::kind::request);
  EXPECT_EQ(request.message.connection.qpn, l.a.qp->qp_num);
  EXPECT_EQ(request.from.gid, a.s.at.gid);
  EXPECT_EQ(request.from.mac, a.s.at.mac) << "the address of the function, not of the port";
  cm::connection_data answer;
  answer.qpn = l.b.qp->qp_num;
  answer.psn = 0x222;
  hosts::connect(l.b.at, b.options, *l.b.qp, l.a.at, request.message.connection.qpn, 0x222,
                 request.message.connection.psn);
  ASSERT_TRUE(b.manager.accept(request.id, answer, {}, now()));
  settle({&a, &b});
  const cm::event reply = a.next(cm::event::kind::reply);
  EXPECT_EQ(reply.message.connection.qpn, l.b.qp->qp_num);
  hosts::connect(l.a.at, a.options, *l.a.qp, l.b.at, reply.message.connection.qpn, 0x111, reply.message.connection.psn);
  ASSERT_TRUE(a.manager.confirm(id, {}));
  settle({&a, &b});
  b.next(cm::event::kind::established);
  expect_works(l);
  ASSERT_TRUE(a.manager.disconnect(id, {}, now()));
  settle({&a, &b});
  ASSERT_TRUE(b.manager.disconnect(b.next(cm::event::kind::disconnect_request).id, {}, now()));
  settle({&a, &b});
  a.next(cm::event::kind::disconnected);
  EXPECT_FALSE(a.manager.has_peers());
  EXPECT_FALSE(b.manager.has_peers());
}

}  // namespace rnic::system_test
