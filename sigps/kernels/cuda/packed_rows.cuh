// Rows that stay packed (graph/packing/DESIGN.md), read page by page by whole
// blocks: a page is copied to the block's scratch, unless it is on the device,
// and the place of each group of 32 numbers is noted. Then any number of it can
// be read by any thread.
//
// Whatever a page holds, nothing outside of it is touched; the number of a page
// that is none is in `damaged`, which is NO_PAGE otherwise. Rows are numbered
// as local ids are; those behind the last row have no edge. With
// SIGPS_PACKED 3 or 4 they are those of one of several ranks, from the store's
// row first_row on: targets are rows of all ranks, and read as local ids.
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
//   fronts:      each page's header and tables, on the device, and
//   first_fronts: [num_pages]      where they begin
//   column_places: [columns, num_pages]  where in a page those of a column of
//                                  its arcs begin (SIGPS_COLUMN_TYPES): they
//                                  stand behind it, and their headers and
//                                  tables in its front. Without the columns
//                                  whose bits are in absent_columns, all of
//                                  which are 1
//   chains_of:   [num_rows / 32 rounded up]  the chain of each 32nd row
//   heads:       a row's targets of the smallest gids, these ascending, as many
//                as num_heads() says, from first_head() on; null where no pull
//                stops early
//   scratch:     [blocks, scratch_words]: a page, its groups, and room for
//                whoever reads it
//   stamps:      [num_chains]      when something of a chain was read last
//   wanted:      [num_rows / 32 rounded up]  bits: rows that heads left open
//   wanted_arcs: [num_chains]      about what they cost, in arcs that are
//                                  copied; zeros between pulls
//   lids_of_rows: [num_targets / 32 rounded up]  of 32 rows that may be
//   targets:
//                 which have a local id, as bits, and in the upper half that of
//                 the first of them, which the others' follow; or, where they
//                 do not, OTHER_LIDS with a number, by which
//   other_lids:  [numbers, 32]     has the local ids
//   gids:        [local ids]       where compute() walks edges to others; null:
//                                  they are the same
//
// With SIGPS_FED some pages are on disk, and the host brings them in the order
// in which chains are taken, a load of them after the other, again and again: a
// sweep is what one pull reads. A load goes to the next slot of a ring. A page
// is copied from there, or left out, once in each sweep, and a slot whose pages
// are all done is filled again. A block that waits for a page holds no other,
// and earlier chains have blocks that go on, so none waits for ever.
//
//   ring:          [num_slots, slot_words]  on the host
//   load_of:       [num_pages]  the load of a page; NO_LOAD where it is not fed
//   place_in_load: [num_pages]  where it begins in its slot
//   pages_of_load: [num_loads]
//   num_done:      [num_loads]  pages that this sweep has done; zeros between
//   arrived:       [num_slots]  what is there, as `number_of`; the host's or
//   the
//                               device's, written while the kernel runs
//   released:      [num_loads]  the last sweep that has done with it; the
//   host's failed:        [1]          the host's: not 0 where no more comes
//   num_sweeps:    [1]          that are over
//
//   damaged:     [1]
//   num_read:    [2]               words that crossed, and chains of which some
//                                  were read

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
  const uint32_t *fronts;
  const uint32_t *first_fronts;
  const uint32_t *column_places;
  const uint32_t *chains_of;
  const uint32_t *heads;
  const uint64_t *lids_of_rows;
  const uint32_t *other_lids;
  const uint32_t *gids;
  const uint32_t *ring;
  const uint32_t *load_of;
  const uint32_t *place_in_load;
  const uint32_t *pages_of_load;
  uint32_t *num_done;
  const uint32_t *arrived;
  uint32_t *released;
  const uint32_t *failed;
  uint32_t *num_sweeps;
  const uint32_t *span_numbers;
  uint32_t *span_stamps;
  void *span_keys;
  void *span_sums;
  uint32_t *scratch;
  uint32_t *stamps;
  uint32_t *wanted;
  uint32_t *wanted_arcs;
  uint32_t *damaged;
  unsigned long long *num_read;
  uint64_t num_resident;
  uint64_t scratch_words;
  uint64_t slot_words;
  uint64_t list_places; // of a block, where messages are listed or edges walked
  uint64_t span_places; // of a table of keys (grouped_packed.cuh)
  uint32_t page_words;  // of the scratch: the longest page that is copied
  uint32_t group_words; // of the scratch: the groups of a page
  uint32_t num_chains;
  uint32_t num_rows;
  uint32_t num_targets; // what targets must be below
  uint32_t first_row;
  uint32_t num_loads, num_slots, num_span_tables;
  uint32_t head_rows[8]; // the first so many rows have a first head, a second
  uint32_t num_pages, absent_columns; // where columns are read
};

namespace packed {

constexpr uint32_t MOST_HEADS = 8;

__device__ inline uint32_t num_heads(const PackedRows &rows, uint32_t row) {
  uint32_t count = 0;
#pragma unroll
  for (uint32_t k = 0; k < MOST_HEADS; k++)
    count += row < rows.head_rows[k];
  return count;
}

// Where those of a row begin: behind all that rows before it have.
__device__ inline uint64_t first_head(const PackedRows &rows, uint32_t row) {
  uint64_t before = 0;
#pragma unroll
  for (uint32_t k = 0; k < MOST_HEADS; k++)
    before += row < rows.head_rows[k] ? row : rows.head_rows[k];
  return before;
}

constexpr uint32_t WHOLE_WARP = 0xffffffff;
constexpr uint32_t CHUNK = 1024, CODE_WORDS = 8;
constexpr uint32_t LEAST_GAP = 1, RELATIVE = 2; // bits of word 3
constexpr uint32_t LOADS_AHEAD = 8;
constexpr uint32_t NO_TARGET = 0xffffffff, OTHER_LIDS = 0x80000000;
constexpr uint32_t NO_LOAD = 0xffffffff;

// Where the numbers of a group are: their words, and exceptions by half words.
struct Group {
  uint32_t payload;
  uint32_t first_long;
  uint8_t width, num_long;
};

// By bits: payload 23, width 6, num_long 3; a page has less than 2^20 words,
// and that of a column not more than half as many.
__device__ inline uint2 code_of(const Group &group) {
  return {group.payload << 9 | uint32_t(group.width) << 3 | group.num_long,
          group.first_long};
}

#ifdef SIGPS_COLUMN_TYPES
template <class... Types> struct TypeList {
  static constexpr uint32_t count = sizeof...(Types);

  __device__ static uint32_t size_of(uint32_t number) {
    const uint32_t sizes[] = {sizeof(Types)...};
    return sizes[number];
  }
};

using ColumnTypes = TypeList<SIGPS_COLUMN_TYPES>;
constexpr uint32_t NUM_COLUMNS = ColumnTypes::count;

// What an edge has of some columns.
template <class First, class... Rest> struct Values {
  First first;
  Values<Rest...> rest;
};
template <class Last> struct Values<Last> {
  Last first;
};

// What a page has of a column.
struct Column {
  const uint32_t *words; // null: there is none
  const uint2 *numbers;  // its groups
  uint64_t base;
  uint32_t is_raw;
};
#endif

// A page that is open: all of its blocks' threads have the same.
struct Page {
  const uint32_t *words;
  const uint2 *firsts; // groups of first targets
  const uint2 *gaps;
  const uint32_t *gap_table; // null: it is damaged
  uint32_t number, num_arcs, flags;
#if SIGPS_PACKED >= 3
  uint32_t first_row;
#endif
#ifdef SIGPS_COLUMN_TYPES
  Column columns[NUM_COLUMNS];
#endif
};

__device__ inline uint32_t lane() { return threadIdx.x % 32; }

__device__ inline uint32_t sum_up_to_lane(uint32_t value) {
  for (uint32_t step = 1; step < 32; step *= 2) {
    uint32_t below = __shfl_sync(WHOLE_WARP, value, (lane() - step) % 32);
    value += lane() >= step ? below : 0;
  }
  return value;
}

// Reads what the host may change while the kernel runs.
__device__ inline uint4 load_once(const uint4 *at) {
#if SIGPS_FED
  return __ldcv(at);
#else
  return __ldcs(at);
#endif
}

// Finds the groups of a chunk of `count` numbers that is `at` a place of its
// page, by a warp: each lane has the code of one. Returns whether it lies in
// the page; else its numbers are zeros.
__device__ inline bool find_groups_at(const uint32_t *words, uint32_t num_words,
                                      uint64_t at, uint32_t count,
                                      uint2 &found) {
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
  found = code_of(group);
  return is_whole;
}

// The same, and notes them.
__device__ inline bool note_groups_at(const uint32_t *words, uint32_t num_words,
                                      uint64_t at, uint32_t count,
                                      uint2 *groups) {
  return find_groups_at(words, num_words, at, count, groups[lane()]);
}

// The same for a chunk whose place is at `entry`.
__device__ inline bool note_groups(const uint32_t *words, uint32_t num_words,
                                   uint64_t entry, uint32_t count,
                                   uint2 *groups) {
  uint64_t at = entry < num_words ? words[entry] : num_words;
  return note_groups_at(words, num_words, at, count, groups);
}

// Notes that something of a chain is read in the superstep with this stamp, so
// that it counts once. By one thread, and as often as one likes.
__device__ inline void stamp_chain(const PackedRows &rows, uint32_t chain,
                                   uint32_t stamp) {
  if (rows.stamps[chain] != stamp &&
      atomicExch(&rows.stamps[chain], stamp) != stamp)
    atomicAdd(&rows.num_read[1], 1ull);
}

#ifdef SIGPS_COLUMN_TYPES
constexpr uint32_t COLUMN_HEADER = 4;

__device__ inline bool is_there(const PackedRows &rows, uint32_t column) {
  return (rows.absent_columns >> column & 1) == 0;
}

// The number of a column among those that are there.
__device__ inline uint32_t number_of_column(const PackedRows &rows,
                                            uint32_t column) {
  return column - __popc(rows.absent_columns & ((1u << column) - 1));
}

__device__ inline uint32_t place_of_column(const PackedRows &rows,
                                           uint32_t page, uint32_t column) {
  return rows
      .column_places[uint64_t(number_of_column(rows, column)) * rows.num_pages +
                     page];
}

// The header and table of a column in the front of a page.
__device__ inline const uint32_t *
front_of_column(const PackedRows &rows, uint32_t page, uint32_t column) {
  const uint32_t *front = rows.fronts + rows.first_fronts[page];
  uint32_t num_gaps = front[2] - front[1];
  uint32_t of_column = COLUMN_HEADER + (front[2] + CHUNK - 1) / CHUNK;
  return front + front[6] + 2 * ((num_gaps + CHUNK - 1) / CHUNK) +
         number_of_column(rows, column) * of_column;
}

// What a page has of a column, but for the groups.
__device__ inline Column open_column(const PackedRows &rows, const Page &page,
                                     uint32_t column) {
  if (!is_there(rows, column))
    return {nullptr, nullptr, 0, 0};
  const uint32_t *front = front_of_column(rows, page.number, column);
  return {page.words + place_of_column(rows, page.number, column), nullptr,
          front[2] | uint64_t(front[3]) << 32, front[0] == 0};
}

// Finds the groups of one chunk of a column of a page; by a warp, as
// find_groups_at does.
__device__ inline bool find_numbers(const PackedRows &rows, uint32_t page,
                                    uint32_t column, const uint32_t *words,
                                    uint32_t num_words, uint32_t chunk,
                                    uint2 &found) {
  const uint32_t *front = front_of_column(rows, page, column);
  uint64_t at = front[COLUMN_HEADER + chunk];
  return find_groups_at(words, num_words,
                        at + place_of_column(rows, page, column),
                        min(CHUNK, front[1] - chunk * CHUNK), found);
}

// Notes those of all chunks; by a block.
__device__ inline void note_column(const PackedRows &rows, uint32_t page,
                                   uint32_t column, const uint32_t *words,
                                   uint32_t num_words, uint2 *groups) {
  if (!is_there(rows, column))
    return;
  const uint32_t *front = front_of_column(rows, page, column);
  if (front[0] == 0)
    return;
  for (uint32_t chunk = threadIdx.x / 32; chunk * CHUNK < front[1];
       chunk += blockDim.x / 32)
    if (!find_numbers(rows, page, column, words, num_words, chunk,
                      groups[chunk * 32 + lane()]) &&
        lane() == 0)
      atomicMin(rows.damaged, page);
}
#endif

#if SIGPS_FED
#ifdef __CUDA_ARCH__
__device__ inline uint32_t load_from_host(const uint32_t *at) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(at)
               : "memory");
  return value;
}

__device__ inline void store_to_host(uint32_t *at, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value)
               : "memory");
}
#else
__device__ uint32_t load_from_host(const uint32_t *at);
__device__ void store_to_host(uint32_t *at, uint32_t value);
#endif

__device__ inline bool is_fed(const PackedRows &rows, uint32_t number) {
  return rows.load_of[number] != NO_LOAD;
}

// The number of a load among those of all sweeps, from 1.
__device__ inline uint64_t number_of(const PackedRows &rows, uint32_t load) {
  return uint64_t(__ldcg(rows.num_sweeps)) * rows.num_loads + load + 1;
}

// Waits until a page is in its slot, and returns where. By all threads of a
// block.
__device__ inline const uint32_t *await_page(const PackedRows &rows,
                                             uint32_t number) {
  uint64_t load = number_of(rows, rows.load_of[number]);
  uint64_t slot = (load - 1) % rows.num_slots;
  if (threadIdx.x == 0)
    while (load_from_host(rows.arrived + slot) != uint32_t(load))
      if (load_from_host(rows.failed)) {
        atomicMin(rows.damaged, number);
        break;
      }
  __syncthreads();
  return rows.ring + slot * rows.slot_words + rows.place_in_load[number];
}

// Gives a page's place back, once a sweep; by one thread.
__device__ inline void release_page(const PackedRows &rows, uint32_t number) {
  uint32_t load = rows.load_of[number];
  if (load == NO_LOAD ||
      atomicAdd(rows.num_done + load, 1u) + 1 != rows.pages_of_load[load])
    return;
  rows.num_done[load] = 0;
  __threadfence();
  store_to_host(rows.released + load, __ldcg(rows.num_sweeps) + 1);
}
#endif

// Notes that pages are not read in this sweep; by all threads of a block.
__device__ inline void leave_out(const PackedRows &rows, uint32_t page,
                                 uint32_t end_page) {
#if SIGPS_FED
  if (threadIdx.x == 0)
    for (; page < end_page; page++)
      release_page(rows, page);
#endif
}

// Opens a page; by all threads of a block.
__device__ inline Page open_page(const PackedRows &rows, uint32_t number) {
  uint64_t first = rows.first_words[number];
  uint32_t num_words = uint32_t(rows.first_words[number + 1] - first);
  bool is_resident = first + num_words <= rows.num_resident;
  const uint32_t *words = (is_resident ? rows.resident : rows.words) + first;
  uint32_t *scratch = rows.scratch + blockIdx.x * rows.scratch_words;
  __syncthreads(); // all are done with the page before
#if SIGPS_FED
  if (is_fed(rows, number))
    words = await_page(rows, number);
#endif
  if (!is_resident) {
    const uint4 *from = reinterpret_cast<const uint4 *>(words);
    uint4 *to = reinterpret_cast<uint4 *>(scratch);
    uint32_t i = threadIdx.x, quads = num_words / 4;
    for (; i + (LOADS_AHEAD - 1) * blockDim.x < quads;
         i += LOADS_AHEAD * blockDim.x) {
      uint4 taken[LOADS_AHEAD];
#pragma unroll
      for (uint32_t k = 0; k < LOADS_AHEAD; k++)
        taken[k] = load_once(from + i + k * blockDim.x);
#pragma unroll
      for (uint32_t k = 0; k < LOADS_AHEAD; k++)
        to[i + k * blockDim.x] = taken[k];
    }
    for (; i < quads; i += blockDim.x)
      to[i] = load_once(from + i);
    words = scratch;
    if (threadIdx.x == 0)
      atomicAdd(rows.num_read, (unsigned long long)(num_words));
    __syncthreads();
#if SIGPS_FED
    if (threadIdx.x == 0)
      release_page(rows, number);
#endif
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
#ifdef SIGPS_COLUMN_TYPES
  uint2 *of_columns = groups + all_chunks * 32;
  uint32_t groups_of_column = (words[2] + CHUNK - 1) / CHUNK * 32;
#pragma unroll
  for (uint32_t c = 0; c < NUM_COLUMNS; c++)
    note_column(rows, number, c, words, num_words,
                of_columns + number_of_column(rows, c) * groups_of_column);
#endif
  __syncthreads();
  uint64_t table = words[6];
  bool is_within = table + 2 * uint64_t(all_chunks - chunks) <= num_words;
  const uint32_t *gap_table = is_within ? words + table : nullptr;
  Page page = {words,    groups,  groups + chunks * 32, gap_table, number,
               words[2], words[3]};
#if SIGPS_PACKED >= 3
  page.first_row = rows.first_row;
#endif
#ifdef SIGPS_COLUMN_TYPES
#pragma unroll
  for (uint32_t c = 0; c < NUM_COLUMNS; c++) {
    page.columns[c] = open_column(rows, page, c);
    page.columns[c].numbers =
        of_columns + number_of_column(rows, c) * groups_of_column;
  }
#endif
  return page;
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

#ifdef SIGPS_COLUMN_TYPES
// What a column has for an arc of a page.
template <class Type>
__device__ inline Type value_of(const Page &page, const Column &column,
                                uint32_t arc) {
  if (column.words == nullptr)
    return Type(1);
  if (column.is_raw)
    return reinterpret_cast<const Type *>(column.words + COLUMN_HEADER)[arc];
  return Type(int64_t(column.base + number_at(page, column.numbers, arc)));
}

// What those from a number on have for it.
template <uint32_t COLUMN, class First, class... Rest>
__device__ inline void fill_values(const Page &page, uint32_t arc,
                                   Values<First, Rest...> &values) {
  values.first = value_of<First>(page, page.columns[COLUMN], arc);
  if constexpr (sizeof...(Rest) > 0)
    fill_values<COLUMN + 1>(page, arc, values.rest);
}
#endif

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
  uint64_t half = value / 2, row = of.row;
#if SIGPS_PACKED >= 3
  row += page.first_row;
#endif
  uint64_t target = row + (value % 2 ? ~half : half);
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

// The local id of a target. By 8 bytes for 32 rows, since the cache holds those
// where it would not hold a number for each row.
__device__ inline uint32_t lid_of(const PackedRows &rows, const Page &page,
                                  uint32_t target) {
#if SIGPS_PACKED >= 3
  uint64_t those = rows.lids_of_rows[target / 32];
  uint32_t bits = uint32_t(those), first = uint32_t(those >> 32);
  uint32_t bit = 1u << target % 32;
  if ((bits & bit) == 0) {
    atomicMin(rows.damaged, page.number);
    return 0;
  }
  if (first & OTHER_LIDS)
    return rows.other_lids[(first ^ OTHER_LIDS) * 32 + target % 32];
  return first + __popc(bits & (bit - 1));
#else
  return target;
#endif
}

// Targets that are taken at once: those of them that are there. Their numbers
// are i, i + step, ...
template <int COUNT> struct Targets {
  uint32_t i, step;
  uint32_t targets[COUNT];
  bool is_there[COUNT];
#ifdef SIGPS_COLUMN_TYPES
  Values<SIGPS_COLUMN_TYPES> values[COUNT];
#endif

  // Fills in number k, which is the part's number i + k * step, but for what
  // leads to it from the one before.
  __device__ void find(const Page &page, const Part &of, uint32_t k,
                       uint32_t end) {
    uint32_t number = i + k * step;
    is_there[k] = number < end;
    targets[k] = is_there[k] ? value_at(page, of, number) : 0;
#ifdef SIGPS_COLUMN_TYPES
    values[k] = {};
    if (is_there[k])
      fill_values<0>(page, of.part + of.first_gap + number, values[k]);
#endif
  }
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
      found.find(page, of, k, of.count);
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      uint32_t target = before + found.targets[k];
      found.targets[k] = checked(rows, page, target, before);
      before = target;
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      if (found.is_there[k])
        found.targets[k] = lid_of(rows, page, found.targets[k]);
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
      found.find(page, of, k, end);
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      uint32_t target = before + sum_up_to_lane(found.targets[k]);
      found.targets[k] = checked(rows, page, target, before);
      before = __shfl_sync(WHOLE_WARP, target, 31);
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      if (found.is_there[k])
        found.targets[k] = lid_of(rows, page, found.targets[k]);
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

// The chain of a row; by a warp. 32 rows are in 32 chains at most.
__device__ inline uint32_t chain_of(const PackedRows &rows, uint32_t row) {
  uint32_t first = rows.chains_of[row / 32], next = first + lane() + 1;
  bool is_before =
      next < rows.num_chains && rows.first_rows[rows.chains[next]] <= row;
  return first + __popc(__ballot_sync(WHOLE_WARP, is_before));
}

// Of a warp: those of a chunk of gaps, one of first targets, and of each column
// those of as many arcs as one chunk of gaps leads to, and the first.
constexpr uint32_t GROUPS_OF_NUMBERS = 33;
#ifdef SIGPS_COLUMN_TYPES
constexpr uint32_t GROUPS_IN_PLACE = 33 + GROUPS_OF_NUMBERS * NUM_COLUMNS;
#else
constexpr uint32_t GROUPS_IN_PLACE = 33;
#endif

#ifdef SIGPS_COLUMN_TYPES
// Notes what is read of a column for some arcs of a page, by a warp, in room
// for GROUPS_OF_NUMBERS. Returns whether it lies in the page; `num_read` is how
// many words cross, about.
__device__ inline bool note_numbers(const PackedRows &rows, Page &page,
                                    uint32_t column, uint32_t num_words,
                                    uint32_t begin, uint32_t end, uint2 *groups,
                                    uint32_t &num_read) {
  Column &own = page.columns[column];
  if (own.words == nullptr)
    return true;
  if (own.is_raw) {
    num_read += (end - begin) * ColumnTypes::size_of(column) / 4;
    return true;
  }
  bool is_whole = true;
  for (uint32_t chunk = begin / CHUNK; chunk * CHUNK < end; chunk++) {
    uint2 found;
    is_whole &= find_numbers(rows, page.number, column, page.words, num_words,
                             chunk, found);
    uint32_t group = chunk * 32 + lane() - begin / 32;
    if (group < GROUPS_OF_NUMBERS) // else, also before 0, it is not read
      groups[group] = found;
  }
  own.numbers = groups - begin / 32;
  num_read += 2 * CODE_WORDS + (end - begin) / 4;
  return is_whole;
}
#endif

// Calls take(Targets) for a part of a page that is not open, by a warp, or for
// every `step`th of its chunks from `begin` on: words are read where they lie,
// those on the host by lines. Returns about how many words crossed.
//
//   groups: [GROUPS_IN_PLACE] of the warp
template <int COUNT, class Take>
__device__ inline uint32_t
for_part_in_place(const PackedRows &rows, uint32_t number, const Part &of,
                  uint32_t begin, uint32_t step, uint2 *groups, Take take) {
  uint64_t first = rows.first_words[number];
  uint32_t num_words = uint32_t(rows.first_words[number + 1] - first);
  bool is_resident = first + num_words <= rows.num_resident;
  const uint32_t *words = (is_resident ? rows.resident : rows.words) + first;
  const uint32_t *front = rows.fronts + rows.first_fronts[number];
  uint32_t num_firsts = front[1], num_gaps = front[2] - num_firsts;
  uint32_t of_first = of.part / CHUNK, num_read = 0;
  Page page = {words,  groups,   groups,  front + front[6],
               number, front[2], front[3]};
#if SIGPS_PACKED >= 3
  page.first_row = rows.first_row;
#endif
  page.firsts = groups + 32 - of.part / 32;
#ifdef SIGPS_COLUMN_TYPES
#pragma unroll
  for (uint32_t c = 0; c < NUM_COLUMNS; c++)
    page.columns[c] = open_column(rows, page, c);
#endif
  for (uint32_t k = begin; k < chunks_of(of); k += step) {
    uint32_t chunk = of.first_gap / CHUNK + k;
    bool is_whole = true;
    __syncwarp(); // all are done with the groups before
    if (k == 0) {
      is_whole =
          note_groups_at(words, num_words, front[front[5] + of_first],
                         min(CHUNK, num_firsts - of_first * CHUNK), groups);
      __syncwarp();
      if (lane() == 0)
        groups[32] = groups[of.part % CHUNK / 32];
      __syncwarp();
      num_read += 2 * CODE_WORDS;
    }
    if (of.count > 1) {
      is_whole &= note_groups_at(words, num_words, front[front[6] + 2 * chunk],
                                 min(CHUNK, num_gaps - chunk * CHUNK), groups);
      uint32_t end = min(of.first_gap + of.count - 1, (chunk + 1) * CHUNK);
      __syncwarp();
      uint2 last = groups[(end - 1) % CHUNK / 32];
      uint32_t from = max(of.first_gap, chunk * CHUNK) % CHUNK / 32;
      num_read += 2 * CODE_WORDS + (last.x >> 9) + (last.x >> 3 & 63) -
                  (groups[from].x >> 9);
    }
#ifdef SIGPS_COLUMN_TYPES
    uint32_t begin_arc = of.part + max(of.first_gap, chunk * CHUNK) + (k != 0);
    uint32_t end_arc =
        of.part + min(of.first_gap + of.count, (chunk + 1) * CHUNK + 1);
#pragma unroll
    for (uint32_t c = 0; c < NUM_COLUMNS; c++)
      is_whole &= note_numbers(rows, page, c, num_words, begin_arc, end_arc,
                               groups + 33 + GROUPS_OF_NUMBERS * c, num_read);
#endif
    if (!is_whole && lane() == 0)
      atomicMin(rows.damaged, number);
    __syncwarp();
    page.gaps = groups - 32 * chunk;
    for_chunk_by_warp<COUNT>(rows, page, of, k, take);
  }
  return is_resident ? 0 : num_read;
}

} // namespace packed

// All of a row of so many edges that is in one page.
__device__ inline packed::Part part_of(const PackedRows &rows, uint32_t v,
                                       uint32_t degree) {
  return {v, rows.parts[v], rows.first_gaps[v], degree};
}

} // namespace sigps
