/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD for udpong: datagram rsockets send to themselves by LID, an address that Ethernet ports do not have.
 *
 * rsocket.c (ds_add_qp_dest, in every rdma-core up to 64) makes an address handle for its own queue pair out of the port's
 * LID and nothing else. On RoCE the kernel refuses address handles without a GRH (core/verbs.c, rdma_check_ah_attr:
 * EINVAL), so rconnect(), and a server's answer to its first client, fail before any packet. Here such a handle gets the
 * GID of row OWN_GID_INDEX, to which it is a way as well; everything else is left as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
  struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *) = dlsym(RTLD_NEXT, "ibv_create_ah");
  const char *row = getenv("OWN_GID_INDEX");
  struct ibv_ah_attr own = *attr;
  if (create == NULL) return NULL;
  if (attr->is_global || row == NULL) return create(pd, attr);
  own.is_global = 1;
  own.grh.sgid_index = (uint8_t)atoi(row);
  own.grh.hop_limit = 64;
  if (ibv_query_gid(pd->context, attr->port_num, own.grh.sgid_index, &own.grh.dgid) != 0) return NULL;
  return create(pd, &own);
}
