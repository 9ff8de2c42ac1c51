// What rows that stay packed bring where messages are grouped by key: of each
// the key of most weight, which tables in shared memory find
// (shared_tables.cuh).
//
// A table may have fewer places than a row has keys. Then it takes some of the
// keys after the others: those whose hash begins with the same bits, one bit
// more each time that some key finds no place. The page is open meanwhile, so
// only its numbers are read again, and those of a row whose neighbours agree
// are read once. No row of a page needs memory of the device.
//
// A row that spans pages is read once, so its keys all have places: in one of a
// few tables in the memory of the device, which chains that have such rows take
// in turns, in the order in which they are taken:
//
//   span_numbers: [num_chains]      the number of a chain among those, in that
//                                   order; its table is the number modulo
//                                   num_span_tables
//   span_stamps:  [such chains]     the superstep that has done with it
//   span_keys, span_sums: [num_span_tables, span_places]
//
// A chain waits for one that was taken before it, so none waits for ever.
//
// Schedule: a row of up to LANE_DEGREE edges by a thread, up to LONG_ROW by a
// warp, others by a block; one thread computes.

#pragma once

#include "packed_messages.cuh"

#if SIGPS_PACKED && SIGPS_GROUPED
#include "shared_tables.cuh"

namespace sigps {

constexpr uint32_t FAR = 64; // places that a key may take of a table too small

// Each key has a hash of its own: a class of so many bits has one key at last.
__device__ inline uint32_t hash_of(uint32_t key) {
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

__device__ inline unsigned long long hash_of(unsigned long long key) {
  key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
  return key ^ key >> 33;
}

// The keys of a pass: those whose hash begins with so many bits.
struct KeyClass {
  uint32_t num_bits = 0;
  uint64_t bits = 0;

  __device__ bool has(KeyWord key) const {
    return num_bits == 0 ||
           hash_of(key) >> (8 * sizeof(KeyWord) - num_bits) == bits;
  }
  __device__ bool is_over() const { return bits >> num_bits != 0; }

  // The next class, or the first half of this one, if it was too large.
  __device__ void go_on(bool had_places) {
    if (had_places) {
      bits++;
    } else {
      num_bits++;
      bits *= 2;
    }
  }
};

// Who counts a row together.
struct CountingWarp {
  __device__ static uint32_t rank() { return lane_id(); }
  __device__ static uint32_t size() { return 32; }
  __device__ static void wait() { __syncwarp(); }
  __device__ static bool is_any(bool value) {
    __syncwarp();
    return __ballot_sync(ALL_LANES, value) != 0;
  }
  __device__ static KeyTable table(uint32_t count) {
    return table_of_warp(places_for(count, WARP_PLACES));
  }
  __device__ static Keyed choose_of_all(Keyed best) {
    return choose_in_warp(best);
  }
  template <class Take>
  __device__ static void for_targets(const PackedRows &rows,
                                     const packed::Page &page,
                                     const packed::Part &part, Take take) {
    packed::for_targets_by_warp<AT_ONCE>(rows, page, part, take);
  }
};

struct CountingBlock {
  __device__ static uint32_t rank() { return threadIdx.x; }
  __device__ static uint32_t size() { return blockDim.x; }
  __device__ static void wait() { __syncthreads(); }
  __device__ static bool is_any(bool value) { return __syncthreads_or(value); }
  __device__ static KeyTable table(uint32_t count) {
    return shared_table(0, places_for(count, BLOCK_PLACES));
  }
  __device__ static Keyed choose_of_all(Keyed best) {
    return choose_in_block(best);
  }
  template <class Take>
  __device__ static void for_targets(const PackedRows &rows,
                                     const packed::Page &page,
                                     const packed::Part &part, Take take) {
    packed::for_targets_by_block<AT_ONCE>(rows, page, part, take);
  }
};

// The key of most weight of a row; of a block thread 0 has it.
template <SenderFilter FILTER, class Group>
__device__ inline Keyed
count_row(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
          const packed::Page &page, const packed::Part &part) {
  Occasion when{lease.in, now.superstep, part.row};
  KeyTable table = Group::table(part.count);
  Keyed best = NO_KEY;
  for (KeyClass those; !those.is_over();) {
    Group::wait(); // all have looked through the keys before
    clear(table, Group::rank(), Group::size());
    Group::wait();
    bool has_all = true;
    Group::for_targets(
        lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
          for_brought<FILTER>(lease, now, outbox, part.row, sources,
                              [&](const Slots &value) {
                                Keyed message = keyed(value);
                                if (has_all && those.has(message.key))
                                  has_all = put<FAR>(table, message, when);
                              });
        });
    bool had_places = !Group::is_any(!has_all);
    if (had_places)
      best = choose(table, Group::rank(), Group::size(), best);
    those.go_on(had_places);
  }
  best = Group::choose_of_all(best);
  Group::wait();
  return best;
}

template <SenderFilter FILTER>
__device__ inline Keyed
count_row_by_lane(const Lease &lease, const NextSuperstep &now,
                  const Outbox &outbox, const packed::Page &page,
                  const packed::Part &part) {
  Occasion when{lease.in, now.superstep, part.row};
  LaneTable table = table_of_lane();
  packed::for_targets<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
        for_brought<FILTER>(lease, now, outbox, part.row, sources,
                            [&](const Slots &value) {
                              put_by_lane(table, keyed(value), when);
                            });
      });
  return choose_by_lane(table);
}

__device__ inline KeyTable table_of_span(const PackedRows &rows, uint32_t chain,
                                         uint32_t degree) {
  uint64_t begin =
      rows.span_places * (rows.span_numbers[chain] % rows.num_span_tables);
  return {static_cast<KeyWord *>(rows.span_keys) + begin,
          static_cast<KeptSum *>(rows.span_sums) + begin,
          uint32_t(min(2 * uint64_t(degree), rows.span_places - 1))};
}

// Waits until the table of a chain's first row is its own. By one thread.
__device__ inline void await_table(const PackedRows &rows, uint32_t chain,
                                   uint32_t stamp) {
  uint32_t number = rows.span_numbers[chain];
  if (number < rows.num_span_tables)
    return;
  const uint32_t *before = rows.span_stamps + number - rows.num_span_tables;
  while (load_relaxed(before) != stamp)
    ;
  load_acquire(before);
}

// Lets the next chain have it. By one thread.
__device__ inline void pass_table_on(const PackedRows &rows, uint32_t chain,
                                     uint32_t stamp) {
  store_release(rows.span_stamps + rows.span_numbers[chain], stamp);
}

// The row is not read. By a block.
__device__ inline void leave_out_span(const PackedRows &rows, uint32_t chain,
                                      uint32_t stamp) {
  if (threadIdx.x == 0) {
    await_table(rows, chain, stamp);
    pass_table_on(rows, chain, stamp);
  }
}

// Takes an empty table for the row of a chain that spans pages. By a block.
__device__ inline void begin_span(const PackedRows &rows, uint32_t chain,
                                  uint32_t degree, uint32_t stamp) {
  if (threadIdx.x == 0)
    await_table(rows, chain, stamp);
  __syncthreads();
  clear(table_of_span(rows, chain, degree), threadIdx.x, blockDim.x);
  __syncthreads();
}

// Counts what a page has of it. By a block.
template <SenderFilter FILTER>
__device__ inline void
count_part_of_span(const Lease &lease, const NextSuperstep &now,
                   const Outbox &outbox, const packed::Page &page,
                   const packed::Part &part, uint32_t chain, uint32_t degree) {
  Occasion when{lease.in, now.superstep, part.row};
  KeyTable table = table_of_span(lease.packed, chain, degree);
  packed::for_targets_by_block<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
        for_brought<FILTER>(lease, now, outbox, part.row, sources,
                            [&](const Slots &value) {
                              put<ALL_PLACES>(table, keyed(value), when);
                            });
      });
}

// The key of most weight of all its pages, for thread 0. By a block.
__device__ inline Keyed end_span(const PackedRows &rows, uint32_t chain,
                                 uint32_t degree, uint32_t stamp) {
  __syncthreads();
  Keyed best = choose_in_block(
      choose(table_of_span(rows, chain, degree), threadIdx.x, blockDim.x));
  if (threadIdx.x == 0)
    pass_table_on(rows, chain, stamp);
  return best;
}

} // namespace sigps
#endif
