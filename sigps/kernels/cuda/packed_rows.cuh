// Rows that stay packed (graph/packing/DESIGN.md), read page by page by whole
// blocks: a page is copied to the block's scratch, unless it is on the device,
// and the place of each group of 32 numbers is noted. Then any number of it can
// be read by any thread.
//
// Whatever a page holds, nothing outside of it is touched; the number of a page
// that is none is in `damaged`, which is NO_PAGE otherwise. Rows are numbered
// as local ids are; those behind the last row have no edge.
//
//   words:       those of all pages, on the host
//   resident:    the first num_resident of them, on the device
//   first_words: [num_pages + 1]   where each page begins among them
//   first_rows:  [num_pages + 1]   its first row; the end of all rows
//   chains:      [num_chains + 1]  the first page of each chain: its first row
//                                  is the only one that spans pages
//   order:       [num_chains]      the order in which chains are taken: pages
//   on
//                                  the device between others, so that the link
//                                  works all the time
//   first_gaps:  [num_rows]        where a row's gaps begin in its page, and
//   parts:       [num_rows]        its first target; 0 of one that spans pages
//   scratch:     [blocks, scratch_words]: a page, its groups, and room for
//                whoever reads it
//   damaged:     [1]
//   num_read:    [1]               words that were copied

#pragma once

#include "integers.cuh"

namespace sigps {

struct PackedRows {
  const uint32_t *words;
  const uint32_t *resident;
  const uint64_t *first_words;
  const uint32_t *first_rows;
  const uint32_t *chains;
  const uint32_t *order;
  const uint32_t *first_gaps;
  const uint32_t *parts;
  uint32_t *scratch;
  uint32_t *damaged;
  unsigned long long *num_read;
  uint64_t num_resident;
  uint64_t scratch_words;
  uint32_t page_words;  // of the scratch: the longest page that is copied
  uint32_t group_words; // of the scratch: the groups of a page
  uint32_t num_chains;
  uint32_t num_rows;
  uint32_t num_targets; // what targets must be below
};

namespace packed {

constexpr uint32_t WHOLE_WARP = 0xffffffff;
constexpr uint32_t CHUNK = 1024, CODE_WORDS = 8;
constexpr uint32_t LEAST_GAP = 1, RELATIVE = 2; // bits of word 3
constexpr uint32_t LOADS_AHEAD = 8;
constexpr uint32_t NO_TARGET = 0xffffffff;

// Where the numbers of a group are: their words, and exceptions by half words.
struct Group {
  uint32_t payload;
  uint32_t first_long;
  uint8_t width, num_long;
};

// By bits: payload 20, width 6, num_long 3; a page has less than 2^20 words.
__device__ inline uint2 code_of(const Group &group) {
  return {group.payload << 9 | uint32_t(group.width) << 3 | group.num_long,
          group.first_long};
}

// A page that is open: all of its blocks' threads have the same.
struct Page {
  const uint32_t *words;
  const uint2 *firsts; // groups of first targets
  const uint2 *gaps;
  const uint32_t *gap_table; // null: it is damaged
  uint32_t number, num_arcs, flags;
};

__device__ inline uint32_t lane() { return threadIdx.x % 32; }

__device__ inline uint32_t sum_up_to_lane(uint32_t value) {
  for (uint32_t step = 1; step < 32; step *= 2) {
    uint32_t below = __shfl_sync(WHOLE_WARP, value, (lane() - step) % 32);
    value += lane() >= step ? below : 0;
  }
  return value;
}

// Notes the groups of a chunk of `count` numbers whose place is at `entry`, by
// a warp. Returns whether it lies in the page; else its numbers are zeros.
__device__ inline bool note_groups(const uint32_t *words, uint32_t num_words,
                                   uint64_t entry, uint32_t count,
                                   uint2 *groups) {
  uint64_t at = entry < num_words ? words[entry] : num_words;
  bool is_whole = at + CODE_WORDS <= num_words;
  uint32_t code = 0;
  if (is_whole && lane() * 32 < count)
    code = words[at + lane() / 4] >> 8 * (lane() % 4) & 255;
  uint32_t width = (code & 31) == 31 ? 32 : code & 31, num_long = code >> 5;
  uint32_t end = sum_up_to_lane(width), end_of_long = sum_up_to_lane(num_long);
  uint32_t all = __shfl_sync(WHOLE_WARP, end, 31);
  uint32_t all_long = __shfl_sync(WHOLE_WARP, end_of_long, 31);
  uint64_t payload = at + CODE_WORDS;
  is_whole = is_whole && payload + all + (all_long + 1) / 2 < num_words;
  Group group = {0, 0, 0, 0};
  if (is_whole)
    group = {uint32_t(payload) + end - width,
             (uint32_t(payload) + all) * 2 + end_of_long - num_long,
             uint8_t(width), uint8_t(num_long)};
  groups[lane()] = code_of(group);
  return is_whole;
}

// Opens a page; by all threads of a block.
__device__ inline Page open_page(const PackedRows &rows, uint32_t number) {
  uint64_t first = rows.first_words[number];
  uint32_t num_words = uint32_t(rows.first_words[number + 1] - first);
  bool is_resident = first + num_words <= rows.num_resident;
  const uint32_t *words = (is_resident ? rows.resident : rows.words) + first;
  uint32_t *scratch = rows.scratch + blockIdx.x * rows.scratch_words;
  __syncthreads(); // all are done with the page before
  if (!is_resident) {
    const uint4 *from = reinterpret_cast<const uint4 *>(words);
    uint4 *to = reinterpret_cast<uint4 *>(scratch);
    uint32_t i = threadIdx.x, quads = num_words / 4;
    for (; i + (LOADS_AHEAD - 1) * blockDim.x < quads;
         i += LOADS_AHEAD * blockDim.x) {
      uint4 taken[LOADS_AHEAD];
#pragma unroll
      for (uint32_t k = 0; k < LOADS_AHEAD; k++)
        taken[k] = __ldcs(from + i + k * blockDim.x);
#pragma unroll
      for (uint32_t k = 0; k < LOADS_AHEAD; k++)
        to[i + k * blockDim.x] = taken[k];
    }
    for (; i < quads; i += blockDim.x)
      to[i] = __ldcs(from + i);
    words = scratch;
    if (threadIdx.x == 0)
      atomicAdd(rows.num_read, (unsigned long long)(num_words));
    __syncthreads();
  }
  uint32_t num_firsts = words[1], num_gaps = words[2] - num_firsts;
  uint32_t chunks = (num_firsts + CHUNK - 1) / CHUNK;
  uint32_t all_chunks = chunks + (num_gaps + CHUNK - 1) / CHUNK;
  uint2 *groups = reinterpret_cast<uint2 *>(scratch + rows.page_words);
  for (uint32_t chunk = threadIdx.x / 32; chunk < all_chunks;
       chunk += blockDim.x / 32) {
    bool is_first = chunk < chunks;
    uint32_t own = is_first ? chunk : chunk - chunks;
    uint32_t count = (is_first ? num_firsts : num_gaps) - own * CHUNK;
    uint64_t entry = is_first ? uint64_t(words[5]) + own
                              : uint64_t(words[6]) + 2 * uint64_t(own);
    bool is_whole =
        note_groups(words, num_words, entry, count, groups + chunk * 32);
    // The target before a chunk of gaps stands behind its place.
    if ((!is_whole || (!is_first && entry + 1 >= num_words)) && lane() == 0)
      atomicMin(rows.damaged, number);
  }
  __syncthreads();
  uint64_t table = words[6];
  bool is_within = table + 2 * uint64_t(all_chunks - chunks) <= num_words;
  const uint32_t *gap_table = is_within ? words + table : nullptr;
  return {words,    groups,  groups + chunks * 32, gap_table, number,
          words[2], words[3]};
}

__device__ inline uint32_t number_at(const Page &page, const uint2 *groups,
                                     uint32_t i) {
  uint2 code = groups[i / 32];
  uint32_t width = code.x >> 3 & 63, num_long = code.x & 7;
  uint32_t bit = i % 32 * width;
  const uint32_t *at = page.words + (code.x >> 9) + bit / 32;
  // Of no bits there is no second word.
  uint64_t pair = at[0] | uint64_t(at[width != 0]) << 32;
  uint32_t value = uint32_t(pair >> bit % 32 & ((uint64_t(1) << width) - 1));
  for (uint32_t k = code.y; k < code.y + num_long; k++) {
    uint32_t half = page.words[k / 2] >> 16 * (k % 2) & 0xffff;
    if (half % 32 == i % 32)
      value |= uint32_t(uint64_t(half >> 5) << width);
  }
  return value;
}

// What a page has of a row: `count` targets, the first one and gaps.
struct Part {
  uint32_t row, part, first_gap, count;
};

// The first target of a part, or what leads from a target to the next one.
__device__ inline uint32_t value_at(const Page &page, const Part &of,
                                    uint32_t i) {
  bool is_first = i == 0;
  uint32_t value = number_at(page, is_first ? page.firsts : page.gaps,
                             is_first ? of.part : of.first_gap + i - 1);
  if (!is_first)
    return value + (page.flags & LEAST_GAP);
  if (!(page.flags & RELATIVE))
    return value;
  uint64_t half = value / 2, target = of.row + (value % 2 ? ~half : half);
  return target >> 32 ? NO_TARGET : uint32_t(target);
}

// A target of a damaged page is another one.
__device__ inline uint32_t checked(const PackedRows &rows, const Page &page,
                                   uint32_t target, uint32_t before) {
  if (target >= rows.num_targets || target < before) {
    atomicMin(rows.damaged, page.number);
    return 0;
  }
  return target;
}

// Targets that are taken at once: those of them that are there. Their numbers
// are i, i + step, ...
template <int COUNT> struct Targets {
  uint32_t i, step;
  uint32_t targets[COUNT];
  bool is_there[COUNT];
};

// Calls take(Targets) for all of a part, by one thread.
template <int COUNT, class Take>
__device__ inline void for_targets(const PackedRows &rows, const Page &page,
                                   const Part &of, Take take) {
  uint32_t before = 0;
  for (uint32_t i = 0; i < of.count; i += COUNT) {
    Targets<COUNT> found;
    found.i = i;
    found.step = 1;
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      found.is_there[k] = i + k < of.count;
      found.targets[k] = found.is_there[k] ? value_at(page, of, i + k) : 0;
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      uint32_t target = before + found.targets[k];
      found.targets[k] = checked(rows, page, target, before);
      before = target;
    }
    take(found);
  }
}

// The same for those from `begin` to `end`, behind a target, by a warp.
template <int COUNT, class Take>
__device__ inline void
for_some_by_warp(const PackedRows &rows, const Page &page, const Part &of,
                 uint32_t before, uint32_t begin, uint32_t end, Take take) {
  for (uint32_t i = begin + lane(); i - lane() < end; i += 32 * COUNT) {
    Targets<COUNT> found;
    found.i = i;
    found.step = 32;
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      found.is_there[k] = i + 32 * k < end;
      found.targets[k] = found.is_there[k] ? value_at(page, of, i + 32 * k) : 0;
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      uint32_t target = before + sum_up_to_lane(found.targets[k]);
      found.targets[k] = checked(rows, page, target, before);
      before = __shfl_sync(WHOLE_WARP, target, 31);
    }
    take(found);
  }
}

template <int COUNT, class Take>
__device__ inline void for_targets_by_warp(const PackedRows &rows,
                                           const Page &page, const Part &of,
                                           Take take) {
  for_some_by_warp<COUNT>(rows, page, of, 0, 0, of.count, take);
}

// How many chunks of gaps a part is in.
__device__ inline uint32_t chunks_of(const Part &of) {
  uint32_t end = of.first_gap + of.count - 1;
  return max(1u, (end + CHUNK - 1) / CHUNK - of.first_gap / CHUNK);
}

// By a warp, those of one of its chunks: the page has the target before it.
template <int COUNT, class Take>
__device__ inline void for_chunk_by_warp(const PackedRows &rows,
                                         const Page &page, const Part &of,
                                         uint32_t number, Take take) {
  uint32_t chunk = of.first_gap / CHUNK + number;
  uint32_t begin = number == 0 ? 0 : chunk * CHUNK - of.first_gap + 1;
  uint32_t end = (chunk + 1) * CHUNK - of.first_gap + 1, before = 0;
  if (number != 0 && page.gap_table != nullptr)
    before = page.gap_table[2 * chunk + 1];
  for_some_by_warp<COUNT>(rows, page, of, before, begin, min(end, of.count),
                          take);
}

template <int COUNT, class Take>
__device__ inline void for_targets_by_block(const PackedRows &rows,
                                            const Page &page, const Part &of,
                                            Take take) {
  for (uint32_t number = threadIdx.x / 32; number < chunks_of(of);
       number += blockDim.x / 32)
    for_chunk_by_warp<COUNT>(rows, page, of, number, take);
}

} // namespace packed
} // namespace sigps
