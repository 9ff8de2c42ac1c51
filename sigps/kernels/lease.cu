// A lease of supersteps: one cooperative launch that runs until nothing is
// active and nothing in flight, or until lease.end. The host is not asked.
//
// A superstep is a pull (gather.cuh) or a push (scatter.cuh) where messages
// combine along edges, a pull of lists (lists.cuh) where compute() reads them
// one by one, or a reading of mail (mail.cuh). It ends with a barrier at which
// the last block counts, records, and plans the next one. Which direction is
// cheaper is the rule of engine/direction.py.
//
// Schedule: any number of blocks that are resident at once, of a multiple of 32
// threads.
//
//   SIGPS_THREADS, SIGPS_BLOCKS  threads of a block, and how many of these a
//                                multiprocessor must be able to hold
//   SIGPS_RELAYS                 0: no superstep pushes as it computes

#if SIGPS_MAILBOX
#include "mail.cuh"
#elif SIGPS_LISTED
#include "lists.cuh"
#else
#include "scatter.cuh"
#endif

using namespace sigps;

namespace {

__device__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void add_where_any(unsigned long long *at,
                              unsigned long long value) {
  value =
      __reduce_add_sync(ALL_LANES, unsigned(value & 0xffffff)) +
      ((unsigned long long)__reduce_add_sync(ALL_LANES, unsigned(value >> 24))
       << 24);
  if (lane_id() == 0 && value != 0)
    atomicAdd(at, value);
}

__device__ void add_tally(const Lease &lease, const Plan &plan,
                          const Tally &tally) {
  Counters *all = &lease.control->counters;
  if (plan.relays && !HAS_AGGREGATES) { // few warps ran: no block has to meet
    if (__any_sync(ALL_LANES, tally.ran)) {
      add_where_any(&all->ran, tally.ran);
      add_where_any(&all->active, tally.active);
      add_where_any(&all->senders, tally.senders);
      add_where_any(&all->retired, tally.retired);
      add_where_any(&all->sent_edges, tally.sent_edges);
    }
    return;
  }
  __shared__ Counters of_block;
  if (threadIdx.x == 0)
    of_block = Counters{};
  if (!__syncthreads_or(tally.ran)) { // in a small superstep, most blocks
    if (HAS_AGGREGATES && threadIdx.x == 0)
      lease.totals[blockIdx.x] = identity_totals();
    return;
  }
  add_where_any(&of_block.ran, tally.ran);
  add_where_any(&of_block.active, tally.active);
  add_where_any(&of_block.senders, tally.senders);
  add_where_any(&of_block.retired, tally.retired);
  add_where_any(&of_block.sent_edges, tally.sent_edges);
  __syncthreads();
  constexpr uint32_t COUNT = sizeof(Counters) / sizeof(unsigned long long);
  if (threadIdx.x < COUNT) { // all of them are on their way at once
    auto *mine = reinterpret_cast<unsigned long long *>(&of_block);
    auto *all =
        reinterpret_cast<unsigned long long *>(&lease.control->counters);
    if (mine[threadIdx.x] != 0)
      atomicAdd(&all[threadIdx.x], mine[threadIdx.x]);
  }
  if (HAS_AGGREGATES) {
    Totals totals = fold_block(tally.totals);
    if (threadIdx.x == 0)
      lease.totals[blockIdx.x] = totals;
  }
}

// Gives the aggregators their next values, or keeps what they would be of for
// the rest of the superstep. By one whole block.
__device__ void fold_totals(const Lease &lease, bool is_complete) {
  Totals totals = identity_totals();
  for (uint32_t block = threadIdx.x; block < gridDim.x; block += blockDim.x)
    sigps_fold(&totals, &lease.totals[block]);
  totals = fold_block(totals);
  if (threadIdx.x != 0)
    return;
  if (SIGPS_MAILBOX) {
    sigps_fold(&totals, lease.carried);
    *lease.carried = is_complete ? identity_totals() : totals;
    if (!is_complete)
      return;
  }
  Totals *now = static_cast<Totals *>(lease.aggregates);
  Totals next = identity_totals();
  for (int i = 0; i < SIGPS_NUM_AGGREGATES; i++)
    if (lease.persistent >> i & 1)
      next.cells[i] = now->cells[i];
  sigps_fold(&next, &totals);
  *now = next;
}

__device__ Direction choose_direction(const Lease &lease,
                                      const Counters &done) {
  if (SIGPS_MAILBOX || !HAS_PUSH || done.active > 0 || lease.forced == 1)
    return PULL;
  if (lease.forced == 2)
    return PUSH;
  return done.sent_edges * lease.push_gain <
                 lease.num_in_edges + lease.num_owned
             ? PUSH
             : PULL;
}

__device__ bool has_no_room(const Lease &lease) {
  return SIGPS_MAILBOX && *lease.in.num_mails > lease.in.mail_room;
}

// Plans the next superstep by what this one did. By one thread.
__device__ void plan_next(const Lease &lease, const Plan &plan) {
  Control *control = lease.control;
  if (has_no_room(lease)) {
    control->plan.ended = NO_ROOM;
    return;
  }
  Counters done = control->counters;
  if (SIGPS_MAILBOX)
    done.sent_edges = *lease.in.num_mails;
  control->counters = Counters{};
  control->next_block_row.value = 0;
  for (uint32_t i = 0; i < NUM_COUNTERS; i++)
    control->next_task[i].value = 0;
  Plan next = plan;
  next.resumes = 0;
  if (SIGPS_MAILBOX && control->is_lost) {
    control->plan.ended = NOBODY_THERE;
    return;
  }
  if (done.ran == 0) { // what nobody ran is no superstep
    next.ended = NOTHING_LEFT;
    control->plan = next;
    return;
  }
  uint64_t now = nanoseconds();
  lease.stats[control->num_stats++] = {plan.superstep, plan.direction, done.ran,
                                       done.sent_edges,
                                       now - control->last_time};
  control->last_time = now;
  bool pushed = plan.direction == PUSH && !plan.sweeps;
  uint32_t from = plan.delivered ? plan.list_at : 1 - plan.list_at;
  next.num_listed = control->num_new.value;
  next.num_hubs = control->num_new_hubs.value;
  next.mean_degree = float(done.sent_edges) / float(max(done.senders, 1ull));
  control->num_new.value = control->num_new_hubs.value = 0;
  control->num_senders.value = control->num_hubs.value = 0;
  next.superstep++;
  next.has_bits = !pushed;
  next.has_lists = pushed;
  next.list_at = pushed ? 1 - from : 0;
  next.delivered = pushed && plan.relays;
  next.inbox_at = next.delivered ? 1 - plan.inbox_at : plan.inbox_at;
  control->num_touched.value = 0;
  next.any_retired |= done.retired > 0;
  next.ended =
      done.active == 0 && done.sent_edges == 0 ? NOTHING_LEFT : NOT_YET;
  next.direction = next.delivered ? PUSH : choose_direction(lease, done);
  next.sweeps = next.delivered && done.active > 0;
  next.relays = lease.relays && next.direction == PUSH && !next.sweeps &&
                done.sent_edges <= RELAY_EDGES;
  next.asking = done.senders == 0                  ? NOBODY
                : done.senders == lease.could_send ? EVERYBODY
                                                   : SOME;
  control->plan = next;
}

#if SIGPS_MAILBOX
__device__ void advance(const Lease &lease, const Plan &plan,
                        uint32_t &generation, Tally &tally) {
  read_and_compute(lease, plan, generation, tally);
}
#elif SIGPS_LISTED
__device__ void advance(const Lease &lease, const Plan &plan, uint32_t &,
                        Tally &tally) {
  list_and_compute(lease, plan, tally);
}
#else
__device__ void pull(const Lease &lease, const Plan &plan, uint32_t &generation,
                     Tally &tally) {
  if (!plan.has_bits) {
    clear_bits(lease.sent[plan.superstep & 1], lease.num_owned);
    wait_for_all(&lease.control->barrier, generation);
    mark_senders(lease, plan);
    wait_for_all(&lease.control->barrier, generation);
  }
  if (plan.asking == NOBODY)
    gather<NOBODY>(lease, plan, tally);
  else if (plan.asking == SOME)
    gather<SOME>(lease, plan, tally);
  else
    gather<EVERYBODY>(lease, plan, tally);
}

__device__ void push(const Lease &lease, const Plan &plan, uint32_t &generation,
                     Tally &tally) {
#if SIGPS_NEUTRAL
  if constexpr (HAS_PUSH) {
    Control *control = lease.control;
    uint32_t from = plan.delivered ? plan.list_at : 1 - plan.list_at;
    uint32_t *touched = lease.lists[from], *next = lease.lists[1 - from];
    Route route{plan.superstep, plan.inbox_at, touched,
                &control->num_touched.value};
    uint32_t count = plan.num_listed, num_hubs = plan.num_hubs;
    if (!plan.delivered && !plan.has_lists) {
      list_senders(lease, plan);
      wait_for_all(&control->barrier, generation);
      count = control->num_senders.value;
      num_hubs = control->num_hubs.value;
    }
    if (!plan.delivered) {
      scatter(lease, plan, route, count, num_hubs);
      wait_for_all(&control->barrier, generation);
      count = control->num_touched.value;
    }
    if (SIGPS_RELAYS && plan.sweeps)
      sweep(lease, plan, tally);
    else if (SIGPS_RELAYS && plan.relays)
      relay(lease, plan, touched, count, next, tally);
    else
      compute_touched(lease, plan, touched, count, next, tally);
  }
#endif
}

__device__ void advance(const Lease &lease, const Plan &plan,
                        uint32_t &generation, Tally &tally) {
  if (plan.direction == PUSH)
    push(lease, plan, generation, tally);
  else
    pull(lease, plan, generation, tally);
}
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, SIGPS_BLOCKS)
    run_lease(const __grid_constant__ Lease lease) {
  __shared__ Plan plan;
  uint32_t generation = load_acquire(&lease.control->barrier.generation);
  if (threadIdx.x == 0) {
    plan = lease.control->plan;
    if (!HAS_PUSH) // the host does not know
      plan.direction = PULL;
  }
  if (thread_of_grid() == 0) { // no other thread comes near before a barrier
    lease.control->last_time = nanoseconds();
    lease.control->num_stats = 0;
  }
  __syncthreads();
  while (!plan.ended && plan.superstep < lease.end) {
    Tally tally = empty_tally();
    advance(lease, plan, generation, tally);
    add_tally(lease, plan, tally);
    wait_for_all(&lease.control->barrier, generation, [&] {
      if (HAS_AGGREGATES && lease.control->counters.ran > 0)
        fold_totals(lease, !has_no_room(lease));
      __syncthreads();
      uint32_t *old = lease.sent[plan.superstep & 1];
      for (uint32_t i = threadIdx.x; i * 32 < lease.num_block_rows;
           i += blockDim.x)
        old[i] = 0; // bits that the next pull sets one by one
      if (threadIdx.x == 0)
        plan_next(lease, plan);
    });
    if (threadIdx.x == 0)
      plan = lease.control->plan;
    __syncthreads();
  }
}
