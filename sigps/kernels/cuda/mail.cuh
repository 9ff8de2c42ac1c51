// Mail: what compute() posted last superstep is sorted by target, by counting,
// and every vertex with mail, or active, computes and posts. Where there are
// other GPUs each reads what all of them posted, in their memory, and takes
// what is for its own vertices; nobody posts again before all have read.
//
// Schedule: a thread a message, then a thread a vertex, or with SIGPS_BY_WARP a
// warp; any grid. The order of one target's messages is left open. A vertex
// that finds no room keeps its state; what it posted is dropped by the host,
// which makes more room.

#pragma once

#include "lease.cuh"
#if SIGPS_PEERS
#include "halo.cuh"
#endif

namespace sigps {

constexpr uint32_t NOWHERE = 0xffffffff;

// Where the vertex of a user's id went: by bisection where ids are any numbers.
__device__ inline uint32_t place_of_id(const Lease &lease, int64_t id) {
  const Mail &mail = lease.mail;
  if (mail.ids == nullptr)
    return id >= 0 && id < lease.num_owned ? mail.places[id] : NOWHERE;
  uint32_t low = 0, high = lease.num_owned;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (mail.ids[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < lease.num_owned && mail.ids[low] == id ? mail.places_of[low]
                                                      : NOWHERE;
}

#if SIGPS_PEERS
// Calls visit(peer, i, place) for all mail to this GPU's vertices, by whomever
// it was posted; returns how much this thread found that others had posted.
template <class Visit>
__device__ inline uint32_t for_mail(const Lease &lease, Visit visit) {
  const Halo &halo = lease.halo;
  uint32_t count = 0;
  for (uint32_t k = 0; k < halo.num_ranks; k++) {
    uint32_t rank = (halo.rank + k) % halo.num_ranks;
    const Peer &peer = halo.peers[rank];
    uint64_t num_mails = __ldcg(peer.num_mails);
    for (uint64_t i = thread_of_grid(); i < num_mails; i += threads_of_grid()) {
      long long target =
          __ldcg(reinterpret_cast<const long long *>(peer.mail_targets) + i);
      uint32_t place = __ldcg(&peer.mail_kinds[i]) == 0
                           ? lease.mail.places[target]
                           : place_of_id(lease, target);
      if (place == NOWHERE)
        continue;
      visit(peer, i, place);
      count += k > 0;
    }
  }
  return count;
}

// Waits until all GPUs have read what is for them, of which there were
// `num_read` here, and tells whether that is all that was posted. Otherwise the
// lease has ended. By one whole block.
__device__ inline bool all_is_read(const Lease &lease, uint64_t num_read) {
  constexpr uint32_t AT_ONCE = 8;
  __shared__ RankReport mine, heard[AT_ONCE];
  __shared__ int32_t lost;
  __shared__ uint32_t is_all;
  const Halo &halo = lease.halo;
  uint32_t meeting = uint32_t(*halo.num_meetings);
  uint32_t warp = threadIdx.x / 32, num_warps = blockDim.x / 32;
  if (threadIdx.x == 0) {
    mine = RankReport{};
    mine.done.ran = num_read;
    mine.done.sent_edges = *lease.in.num_mails;
    lost = -1;
  }
  __syncthreads();
  fence_for_all();
  for (uint32_t rank = warp; rank < halo.num_ranks; rank += num_warps) {
    Addressee to = addressee(lease, meeting, rank);
    tell({to.halves, 0}, meeting, mine);
  }
  uint64_t posted = 0, read = 0;
  for (uint32_t first = 0; first < halo.num_ranks; first += AT_ONCE) {
    uint32_t end = min(first + AT_ONCE, halo.num_ranks);
    for (uint32_t rank = first + warp; rank < end; rank += num_warps)
      if (!listen(lease, meeting, rank, heard[rank - first]))
        lost = rank;
    __syncthreads();
    for (uint32_t rank = first; rank < end; rank++) {
      posted += heard[rank - first].done.sent_edges;
      read += heard[rank - first].done.ran;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *halo.num_meetings = meeting + 1;
    is_all = lost < 0 && posted == read;
    if (lost >= 0)
      lease.control->lost_id = lost;
    if (!is_all)
      lease.control->plan.ended = lost >= 0 ? PEER_LOST : NOBODY_THERE;
  }
  __syncthreads();
  return is_all;
}
#endif

// Counts the messages of every vertex. Targets become places; what was the
// sender becomes the number of the message among those of its target.
__device__ inline void count_mail(const Lease &lease, uint64_t num_mails) {
  const Job &job = lease.in;
  for (uint64_t i = thread_of_grid(); i < num_mails; i += threads_of_grid()) {
    int64_t target = job.mail_targets[i];
    uint32_t place = job.mail_kinds[i] == 0 ? lease.mail.places[target]
                                            : place_of_id(lease, target);
    job.mail_targets[i] = place;
    if (place != NOWHERE) {
      job.mail_senders[i] = atomicAdd(&lease.mail.counts[place], 1);
    } else {
      lease.control->lost_id = target;
      lease.control->is_lost = 1;
    }
  }
}

// The sum of the block's values, for every thread of it.
__device__ inline uint64_t sum_block(uint64_t value) {
  __shared__ unsigned long long sum;
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  if (value != 0)
    atomicAdd(&sum, value);
  __syncthreads();
  value = sum;
  __syncthreads();
  return value;
}

// The sum of the values of this thread and of those before it in the block.
__device__ inline uint64_t scan_block(uint64_t value) {
  __shared__ uint64_t of_warp[32];
#pragma unroll
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    uint64_t before = __shfl_up_sync(ALL_LANES, value, distance);
    value += lane_id() >= distance ? before : 0;
  }
  if (lane_id() == 31)
    of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  for (uint32_t warp = 0; warp < threadIdx.x / 32; warp++)
    value += of_warp[warp];
  __syncthreads();
  return value;
}

// Makes counts of messages into places in the order of targets, and the counts
// 0, but where there are other GPUs. Every block has vertices of its own.
__device__ inline void place_targets(const Lease &lease, uint32_t &generation) {
  const Mail &mail = lease.mail;
  uint32_t n = lease.num_owned;
  uint32_t share = (n + gridDim.x - 1) / gridDim.x;
  uint32_t begin = min(uint64_t(n), uint64_t(share) * blockIdx.x);
  uint32_t end = min(n, begin + share);
  uint64_t sum = 0;
  for (uint32_t v = begin + threadIdx.x; v < end; v += blockDim.x)
    sum += mail.counts[v];
  sum = sum_block(sum);
  if (threadIdx.x == 0)
    mail.of_block[blockIdx.x] = sum;
  wait_for_all(&lease.control->barrier, generation);
  uint64_t base = 0;
  for (uint32_t block = threadIdx.x; block < blockIdx.x; block += blockDim.x)
    base += mail.of_block[block];
  base = sum_block(base);
  for (uint32_t first = begin; first < end; first += blockDim.x) {
    uint32_t v = first + threadIdx.x;
    uint64_t count = v < end ? mail.counts[v] : 0;
    uint64_t upto = scan_block(count);
    if (v < end) {
      lease.offsets[v] = base + upto - count;
      if (!SIGPS_PEERS)
        mail.counts[v] = 0;
    }
    base += sum_block(count);
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
    lease.offsets[n] = base;
  wait_for_all(&lease.control->barrier, generation);
}

__device__ inline void put_in_order(const Lease &lease, uint64_t position,
                                    const Message *message) {
#if SIGPS_LISTED
  sigps_list(&lease.in, position, message);
#else
  lease.mail.messages[position] = *message;
#endif
}

#if SIGPS_PEERS
__device__ inline void sort_mail(const Lease &lease, uint32_t &generation) {
  uint32_t *counts = lease.mail.counts;
  for_mail(lease, [&](const Peer &, uint64_t, uint32_t place) {
    atomicAdd(&counts[place], 1);
  });
  wait_for_all(&lease.control->barrier, generation);
  place_targets(lease, generation);
  uint32_t crossed =
      for_mail(lease, [&](const Peer &peer, uint64_t i, uint32_t place) {
        uint32_t before = atomicSub(&counts[place], 1);
        Message message = peer.mail_messages[i];
        put_in_order(lease, lease.offsets[place] + before - 1, &message);
      });
  __syncwarp();
  add_where_any(&lease.halo.num_published[lease.halo.rank], crossed);
  wait_for_all(&lease.control->barrier, generation, [&] {
    bool goes_on = all_is_read(lease, lease.offsets[lease.num_owned]);
    if (threadIdx.x == 0 && goes_on)
      *lease.in.num_mails = 0;
  });
}
#else
__device__ inline void sort_mail(const Lease &lease, uint32_t &generation) {
  const Job &job = lease.in;
  uint64_t num_mails = *job.num_mails;
  count_mail(lease, num_mails);
  wait_for_all(&lease.control->barrier, generation);
  place_targets(lease, generation);
  const Message *posted = static_cast<const Message *>(job.mail_messages);
  for (uint64_t i = thread_of_grid(); i < num_mails; i += threads_of_grid()) {
    uint32_t place = job.mail_targets[i];
    if (place == NOWHERE)
      continue;
    put_in_order(lease, lease.offsets[place] + job.mail_senders[i], &posted[i]);
  }
  wait_for_all(&lease.control->barrier, generation,
               [&] { *job.num_mails = 0; });
}
#endif

__device__ inline Inbox open_mail(const Lease &lease, const Plan &plan,
                                  uint32_t v) {
  uint64_t begin = lease.offsets[v], end = lease.offsets[v + 1];
#if SIGPS_LISTED
  return listed(begin, end);
#else
  Inbox inbox = empty_inbox();
  for (uint64_t i = begin; i < end; i++) {
    Slots value;
    sigps_lift(&lease.in, plan.superstep, &lease.mail.messages[i], &value);
    put(inbox, value);
  }
  return inbox;
#endif
}

// Whether a vertex found no room, which is told once.
__device__ inline bool runs_again(const Lease &lease, uint32_t v) {
  uint32_t bit = 1u << v % 32;
  if (!SIGPS_BY_WARP)
    return atomicAnd(&lease.mail.again[v / 32], ~bit) & bit;
  uint32_t before = 0;
  if (lane_id() == 0)
    before = atomicAnd(&lease.mail.again[v / 32], ~bit);
  return __shfl_sync(ALL_LANES, before, 0) & bit;
}

__device__ inline void read_and_compute(const Lease &lease, const Plan &plan,
                                        uint32_t &generation, Tally &tally) {
  if (plan.superstep > 0 && !plan.resumes)
    sort_mail(lease, generation);
  if (SIGPS_PEERS && lease.control->plan.ended)
    return; // some of it did not come
  for (uint32_t v = thread_of_grid() / LANES_OF_VERTEX; v < lease.num_owned;
       v += threads_of_grid() / LANES_OF_VERTEX) {
    if (plan.resumes && !runs_again(lease, v))
      continue;
    uint8_t status = lease.status[v];
    if (status == RETIRED)
      continue;
    Inbox inbox = open_mail(lease, plan, v);
    if (inbox.has || status == ACTIVE)
      run_vertex(lease, plan, v, status, inbox, tally);
  }
}

} // namespace sigps
