// Lays in-edges out in tiles and rows (Tiles, edges.cuh), when a graph is
// loaded; the caller is engine/gpu/tiles.py.
//
// Edges are keys in ascending order, [num_edges]: the row in the upper half,
// the source in the lower. A pair is what successive edges of one row have in
// common whose sources share a segment. Where these are fewer than `shortest`,
// two or more, they stay in the row, and each is as good as a pair of its own.
// Vertices get new numbers; keys have the old ones. Pairs are numbered by new
// rows, and in a row by segments: so lanes that have neighbouring rows have
// neighbouring partials, too.
//
// Schedule: a warp a row or slice, or a thread a pair or vertex, any grid.

#include "edges.cuh"

namespace {

using namespace sigps;

__device__ uint64_t thread_of_all() {
  return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ uint64_t num_threads() { return uint64_t(gridDim.x) * blockDim.x; }

__device__ uint32_t segment_of(uint64_t key, uint32_t size) {
  return uint32_t(key) / size;
}

// A row's edges among keys, and how they are cut into pairs.
struct KeysOfRow {
  const uint64_t *keys;
  uint64_t begin;
  uint64_t end;
  uint32_t size;
  uint32_t shortest;

  // Whether an edge has its segment in common with the one before.
  __device__ bool follows(uint64_t e) const {
    return e > begin &&
           segment_of(keys[e], size) == segment_of(keys[e - 1], size);
  }
  // Whether too few edges have a segment in common with this one.
  __device__ bool is_left(uint64_t e) const {
    uint32_t count = 1;
    for (uint64_t i = e; count < shortest && follows(i); i--)
      count++;
    for (uint64_t i = e + 1; count < shortest && i < end && follows(i); i++)
      count++;
    return count < shortest;
  }
};

// For each edge of a row, by a warp: whether a pair begins with it, how many of
// the row did before those of these lanes, and whether it is its segment's
// first edge.
template <class Do>
__device__ uint32_t for_each_beginning(const KeysOfRow &row, Do act) {
  uint32_t lane = threadIdx.x % 32, before = 0;
  for (uint64_t first = row.begin; first < row.end; first += 32) {
    uint64_t e = first + lane;
    bool leads = e < row.end && !row.follows(e);
    bool begins = leads || (row.shortest > 2 && e < row.end && row.is_left(e));
    uint32_t those = __ballot_sync(0xffffffff, begins);
    if (begins)
      act(e, before + __popc(those & ((1u << lane) - 1)), leads);
    before += __popc(those);
  }
  return before;
}

} // namespace

// Makes what the vertices of a whole graph are sorted by to number them: their
// degree, descending, then their number on the host.
extern "C" __global__ void order_vertices_thread_mapped(const uint64_t *offsets,
                                                        uint64_t num_rows,
                                                        uint64_t *order) {
  for (uint64_t v = thread_of_all(); v < num_rows; v += num_threads())
    order[v] = uint64_t(~uint32_t(offsets[v + 1] - offsets[v])) << 32 | v;
}

extern "C" __global__ void number_vertices_thread_mapped(const uint64_t *order,
                                                         uint64_t num_rows,
                                                         uint32_t *lids) {
  for (uint64_t i = thread_of_all(); i < num_rows; i += num_threads())
    lids[uint32_t(order[i])] = uint32_t(i);
}

// The edges of each row, by local id.
extern "C" __global__ void count_edges_thread_mapped(const uint64_t *offsets,
                                                     const uint32_t *lids,
                                                     uint64_t num_rows,
                                                     uint32_t *degrees) {
  for (uint64_t v = thread_of_all(); v < num_rows; v += num_threads())
    degrees[lids[v]] = uint32_t(offsets[v + 1] - offsets[v]);
}

// For each 32 rows, by a warp: the sum of their counts, the largest, and
// whether other counts differ.
//
//   others: [num_rows] or null
extern "C" __global__ void
measure_rows_warp_mapped(const uint32_t *counts, const uint32_t *others,
                         uint64_t num_rows, unsigned long long *sums,
                         uint32_t *most, uint32_t *differ) {
  uint64_t num_slices = (num_rows + 31) / 32;
  for (uint64_t s = thread_of_all() / 32; s < num_slices;
       s += num_threads() / 32) {
    uint64_t row = s * 32 + threadIdx.x % 32;
    uint32_t count = row < num_rows ? counts[row] : 0;
    bool differs = others && row < num_rows && others[row] != count;
    uint32_t those = __ballot_sync(0xffffffff, differs);
    unsigned long long sum = count;
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffff, sum, distance);
      uint32_t other = __shfl_xor_sync(0xffffffff, count, distance);
      count = count > other ? count : other;
    }
    if (threadIdx.x % 32 == 0) {
      sums[s] = sum;
      most[s] = count;
      differ[s] = those != 0;
    }
  }
}

namespace {

// Writes where rows of so many elements begin, [num_rows + 1], from where each
// 32 of them do, by warps.
template <class T>
__device__ void begin_rows(const uint32_t *counts, uint64_t num_rows,
                           const unsigned long long *begins, T *firsts) {
  uint64_t num_slices = (num_rows + 31) / 32;
  for (uint64_t s = thread_of_all() / 32; s < num_slices;
       s += num_threads() / 32) {
    uint32_t lane = threadIdx.x % 32;
    uint64_t row = s * 32 + lane;
    uint32_t count = row < num_rows ? counts[row] : 0;
    unsigned long long first = begins[s];
    for (uint32_t k = 0; k < 32; k++) {
      uint32_t other = __shfl_sync(0xffffffff, count, k);
      first += k < lane ? other : 0;
    }
    if (row < num_rows)
      firsts[row] = T(first);
    if (row + 1 == num_rows)
      firsts[num_rows] = T(first + count);
  }
}

} // namespace

extern "C" __global__ void
begin_rows_32_warp_mapped(const uint32_t *counts, uint64_t num_rows,
                          const unsigned long long *begins, uint32_t *firsts) {
  begin_rows(counts, num_rows, begins, firsts);
}

extern "C" __global__ void
begin_rows_64_warp_mapped(const uint32_t *counts, uint64_t num_rows,
                          const unsigned long long *begins, uint64_t *firsts) {
  begin_rows(counts, num_rows, begins, firsts);
}

// Adds to the counts of some rows, each of which is named once.
//
//   more: [num_more, 2]             row, count
extern "C" __global__ void add_counts_thread_mapped(const uint32_t *more,
                                                    uint64_t num_more,
                                                    uint32_t *counts) {
  for (uint64_t i = thread_of_all(); i < num_more; i += num_threads())
    counts[more[2 * i]] += more[2 * i + 1];
}

// Counts the pairs of each row, an edge that stays there as one.
//
//   num_pairs: [num_rows]
//   totals: [2]  edges whose source is not among the first num_near, nor among
//                num_hot ghosts from first_hot on; and segments from which an
//                edge leads to a row
extern "C" __global__ void
count_pairs_warp_mapped(const uint64_t *keys, const uint64_t *offsets,
                        uint64_t num_rows, uint32_t size, uint32_t shortest,
                        uint32_t num_near, uint32_t first_hot, uint32_t num_hot,
                        uint32_t *num_pairs, unsigned long long *totals) {
  uint64_t warp = thread_of_all() / 32, far = 0, leading = 0;
  for (uint64_t v = warp; v < num_rows; v += num_threads() / 32) {
    uint32_t count = for_each_beginning(
        KeysOfRow{keys, offsets[v], offsets[v + 1], size, shortest},
        [&](uint64_t, uint32_t, bool leads) { leading += leads; });
    if (threadIdx.x % 32 == 0)
      num_pairs[v] = count;
    for (uint64_t e = offsets[v] + threadIdx.x % 32; e < offsets[v + 1];
         e += 32) {
      uint32_t source = uint32_t(keys[e]);
      far += source >= num_near && source - first_hot >= num_hot;
    }
  }
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    far += __shfl_down_sync(0xffffffff, far, distance);
    leading += __shfl_down_sync(0xffffffff, leading, distance);
  }
  if (threadIdx.x % 32 == 0 && leading) {
    atomicAdd(&totals[0], (unsigned long long)far);
    atomicAdd(&totals[1], (unsigned long long)leading);
  }
}

//   renamed:     [num_rows]         the new number of each row
//   first_pairs: [num_rows + 1]     by new rows
//   starts:      [num_pairs]        a pair's first edge
//   rows:        [num_pairs]        its new row
extern "C" __global__ void
mark_pairs_warp_mapped(const uint64_t *keys, const uint64_t *offsets,
                       uint64_t num_rows, uint32_t size, uint32_t shortest,
                       const uint32_t *renamed, const uint32_t *first_pairs,
                       uint32_t *starts, uint32_t *rows) {
  uint64_t warp = thread_of_all() / 32;
  for (uint64_t v = warp; v < num_rows; v += num_threads() / 32) {
    uint32_t row = renamed[v], first = first_pairs[row];
    for_each_beginning(
        KeysOfRow{keys, offsets[v], offsets[v + 1], size, shortest},
        [&](uint64_t e, uint32_t number, bool) {
          starts[first + number] = uint32_t(e);
          rows[first + number] = row;
        });
  }
}

namespace {

// Pairs: where their edges are.
//
//   stops: [num_rows]               where the edges of a new row end
struct Pairs {
  const uint32_t *starts;
  const uint32_t *rows;
  const uint32_t *stops;
  uint64_t num_pairs;

  __device__ uint32_t stop(uint64_t p) const {
    bool is_last = p + 1 == num_pairs || rows[p + 1] != rows[p];
    return is_last ? stops[rows[p]] : starts[p + 1];
  }
  __device__ uint32_t count(uint64_t p) const { return stop(p) - starts[p]; }
};

} // namespace

// Makes what pairs of less than `most` edges are sorted by: their segment, then
// descending counts, then their numbers. Edges that stay in rows, and longer
// pairs, come behind all; longer ones are listed.
//
//   counts: [2]                     pairs that lanes take; longer pairs
//   longer: [capacity, 4]           pair, edges, segment, row
extern "C" __global__ void order_pairs_thread_mapped(
    const uint64_t *keys, const uint32_t *starts, const uint32_t *rows,
    const uint32_t *stops, uint64_t num_pairs, uint32_t size, uint32_t most,
    uint64_t *order, uint32_t *counts, uint32_t *longer, uint32_t capacity) {
  for (uint64_t p = thread_of_all(); p < num_pairs; p += num_threads()) {
    uint32_t count = Pairs{starts, rows, stops, num_pairs}.count(p);
    uint64_t segment = segment_of(keys[starts[p]], size);
    bool is_lane = count > 1 && count < most;
    order[p] =
        is_lane ? segment << 48 | uint64_t(0xffff - count) << 32 | p : ~0ull;
    uint32_t active = __activemask();
    uint32_t lanes = __ballot_sync(active, is_lane);
    if (lanes && threadIdx.x % 32 == __ffs(active) - 1)
      atomicAdd(&counts[0], __popc(lanes));
    if (count >= most) {
      uint32_t at = atomicAdd(&counts[1], 1u);
      if (at < capacity) {
        longer[4 * at] = uint32_t(p);
        longer[4 * at + 1] = count;
        longer[4 * at + 2] = uint32_t(segment);
        longer[4 * at + 3] = rows[p];
      }
    }
  }
}

// Finds where each segment begins in the order, [num_segments + 1].
extern "C" __global__ void find_segments_thread_mapped(const uint64_t *order,
                                                       uint64_t num_lanes,
                                                       uint64_t num_segments,
                                                       uint32_t *begins) {
  for (uint64_t s = thread_of_all(); s <= num_segments; s += num_threads()) {
    uint64_t begin = 0, end = num_lanes;
    while (begin < end) {
      uint64_t middle = begin + (end - begin) / 2;
      if (order[middle] >> 48 < s)
        begin = middle + 1;
      else
        end = middle;
    }
    begins[s] = uint32_t(begin);
  }
}

// Slices: 32 pairs in their order, or a piece of a longer one.
//
//   origins: [num_slices]           of lanes: the place of lane 0 in the order;
//                                   of pieces: the first edge
//   sizes: [num_slices]             pairs; of a piece its edges and IS_PIECE
constexpr uint32_t IS_PIECE = 1u << 31;

// The lines of each slice: the first of its pairs has the most edges.
extern "C" __global__ void measure_slices_thread_mapped(const uint64_t *order,
                                                        const uint32_t *origins,
                                                        const uint32_t *sizes,
                                                        uint64_t num_slices,
                                                        uint32_t *widths) {
  for (uint64_t s = thread_of_all(); s < num_slices; s += num_threads()) {
    uint32_t size = sizes[s];
    widths[s] =
        size & IS_PIECE
            ? ((size & ~IS_PIECE) + 63) / 64
            : (0xffff - uint32_t(order[origins[s]] >> 32 & 0xffff) + 1) / 2;
  }
}

// Makes what vertices are sorted by to number them anew: their segment, then
// the pairs of their rows, descending.
extern "C" __global__ void order_rows_thread_mapped(const uint32_t *num_pairs,
                                                    uint64_t num_rows,
                                                    uint32_t size,
                                                    uint64_t *order) {
  for (uint64_t v = thread_of_all(); v < num_rows; v += num_threads()) {
    uint64_t most = (1u << 24) - 1;
    uint64_t behind = most - (num_pairs[v] < most ? num_pairs[v] : most);
    order[v] = v / size << 40 | behind << 16 | v % size;
  }
}

//   renamed: [num_rows or more]     the new number of each; ghosts keep theirs
//   renamed_pairs, renamed_degrees: [num_rows]   by new numbers
//   stops: [num_rows]               where the edges of each end, too
extern "C" __global__ void
rename_rows_thread_mapped(const uint64_t *order, const uint32_t *num_pairs,
                          const uint32_t *degrees, const uint64_t *offsets,
                          uint64_t num_rows, uint32_t size, uint32_t *renamed,
                          uint32_t *renamed_pairs, uint32_t *renamed_degrees,
                          uint32_t *stops) {
  for (uint64_t i = thread_of_all(); i < num_rows; i += num_threads()) {
    uint32_t old =
        uint32_t(order[i] >> 40) * size + uint32_t(order[i] & 0xffff);
    renamed[old] = uint32_t(i);
    renamed_pairs[i] = num_pairs[old];
    renamed_degrees[i] = degrees[old];
    stops[i] = uint32_t(offsets[old + 1]);
  }
}

// Tells each pair that lanes take its partial, and each partial its row.
//
//   begins: [segments + 1]          in the order
//   slices: [segments]              the first slice of lanes
extern "C" __global__ void
place_partials_thread_mapped(const uint64_t *order, uint64_t num_lanes,
                             const uint32_t *begins, const uint32_t *slices,
                             const uint32_t *rows, uint32_t *partials,
                             uint32_t *rows_of_partials) {
  for (uint64_t i = thread_of_all(); i < num_lanes; i += num_threads()) {
    uint32_t segment = uint32_t(order[i] >> 48), pair = uint32_t(order[i]);
    uint32_t partial = slices[segment] * 32 + (uint32_t(i) - begins[segment]);
    partials[pair] = partial;
    rows_of_partials[partial] = rows[pair];
  }
}

// The same for pieces of longer pairs.
//
//   pieces: [num_pieces, 4]         pair, number in the pair, slice, row
extern "C" __global__ void
place_pieces_thread_mapped(const uint32_t *pieces, uint64_t num_pieces,
                           uint32_t *partials, uint32_t *rows_of_partials) {
  for (uint64_t i = thread_of_all(); i < num_pieces; i += num_threads()) {
    const uint32_t *piece = &pieces[4 * i];
    if (piece[1] == 0)
      partials[piece[0]] = piece[2] * 32;
    rows_of_partials[piece[2] * 32] = piece[3];
  }
}

// Writes the ends of the rows: of each pair its partial, or its one source.
extern "C" __global__ void place_rows_thread_mapped(
    const __grid_constant__ Edges edges, const uint64_t *keys,
    const uint32_t *starts, const uint32_t *rows, const uint32_t *stops,
    const uint32_t *first_pairs, uint64_t num_pairs, const uint32_t *partials,
    const uint32_t *renamed, uint32_t first_partial, uint32_t *ends) {
  Pairs pairs{starts, rows, stops, num_pairs};
  for (uint64_t p = thread_of_all(); p < num_pairs; p += num_threads()) {
    RowOfEdges row = row_of(edges, rows[p]);
    ends[row.first + uint64_t(p - first_pairs[rows[p]]) * row.step] =
        pairs.count(p) == 1 ? renamed[uint32_t(keys[starts[p]])]
                            : first_partial + partials[p];
  }
}

// The pieces of a pair but the first stand behind the pairs of their row.
//
//   more: [num_more, 3]             row, place in the row, slice
extern "C" __global__ void
place_more_thread_mapped(const __grid_constant__ Edges edges,
                         const uint32_t *more, uint64_t num_more,
                         uint32_t first_partial, uint32_t *ends) {
  for (uint64_t i = thread_of_all(); i < num_more; i += num_threads()) {
    RowOfEdges row = row_of(edges, more[3 * i]);
    ends[row.first + uint64_t(more[3 * i + 1]) * row.step] =
        first_partial + more[3 * i + 2] * 32;
  }
}

namespace {

// The next places of a lane, of which it may give any one away first; those
// that are there come first.
constexpr int WINDOW = 8;

// Takes one place of each lane's window, if it has some, so that few lanes
// which read at once read other words of one bank: each proposes its first,
// those without a rival or with a word that another reads have it, and the
// others propose their next. By a warp.
//
//   num_banks: of records, and the lanes that read at once
__device__ uint32_t choose(const uint32_t (&window)[WINDOW],
                           uint32_t num_banks) {
  constexpr uint32_t ALL = 0xffffffff, NOT_ANY = 1 << 16;
  uint32_t lane = threadIdx.x % 32, chosen = NO_PLACE;
#pragma unroll
  for (int i = 0; i < WINDOW; i++) {
    bool waits = chosen == NO_PLACE && window[0] != NO_PLACE;
    if (__ballot_sync(ALL, waits) == 0)
      break;
    uint32_t mine = waits ? window[i] : chosen;
    uint32_t bank = lane / num_banks << 8 | mine % num_banks;
    uint32_t rivals =
        __match_any_sync(ALL, mine == NO_PLACE ? NOT_ANY + lane : bank);
    uint32_t those = rivals & __ballot_sync(ALL, chosen != NO_PLACE);
    uint32_t first = __ffs(those ? those : rivals) - 1;
    if (__shfl_sync(ALL, mine, first) == mine)
      chosen = mine;
  }
  return chosen == NO_PLACE ? window[0] : chosen;
}

} // namespace

namespace {

// What is written of all slices: their pairs, and where sources lie.
struct Slices {
  const uint64_t *keys;
  const uint64_t *order;
  Pairs pairs;
  const uint32_t *origins;
  const uint32_t *sizes;
  const uint32_t *lines;
  uint64_t num_slices;
  const uint32_t *renamed;
  uint32_t segment_size;
  uint32_t num_banks;
};

// Calls write(word, half, place, edge) for both halves of each word, a warp a
// slice: NO_PLACE where a half has no edge. The edges of a lane have no order
// of their own.
template <class Write>
__device__ void for_each_half(const Slices &slices, Write write) {
  uint32_t lane = threadIdx.x % 32;
  for (uint64_t s = thread_of_all() / 32; s < slices.num_slices;
       s += num_threads() / 32) {
    bool is_piece = slices.sizes[s] & IS_PIECE;
    uint32_t size = slices.sizes[s] & ~IS_PIECE, step = is_piece ? 32 : 1;
    uint32_t next = slices.origins[s], end = next;
    if (is_piece) {
      end += size;
      next += lane;
    } else if (lane < size) {
      uint32_t pair = uint32_t(slices.order[slices.origins[s] + lane]);
      next = slices.pairs.starts[pair];
      end = slices.pairs.stop(pair);
    }
    uint32_t window[WINDOW], edges[WINDOW];
    auto take = [&](int i) {
      edges[i] = next;
      window[i] = NO_PLACE;
      if (next < end) {
        uint32_t source = uint32_t(slices.keys[next]);
        window[i] = slices.renamed[source] % slices.segment_size;
        next += step;
      }
    };
#pragma unroll
    for (int i = 0; i < WINDOW; i++)
      take(i);
    for (uint32_t line = slices.lines[s]; line < slices.lines[s + 1]; line++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        uint32_t chosen = choose(window, slices.num_banks), edge = 0;
        bool is_behind = false; // the others move up
#pragma unroll
        for (int i = 0; i < WINDOW; i++) {
          if (!is_behind && window[i] == chosen) {
            is_behind = true;
            edge = edges[i];
          }
          if (is_behind && i + 1 < WINDOW) {
            window[i] = window[i + 1];
            edges[i] = edges[i + 1];
          } else if (is_behind) {
            take(i);
          }
        }
        write(line * 32ull + lane, half, chosen, edge);
      }
    }
  }
}

template <class T>
__device__ void place_tile_column(const Slices &slices, const int64_t *origins,
                                  const T *column, T *placed) {
  for_each_half(slices,
                [&](uint64_t word, int half, uint32_t place, uint32_t edge) {
                  if (place != NO_PLACE)
                    placed[2 * word + half] = column[origins[edge]];
                });
}

// Of edges that stay in rows.
template <class T>
__device__ void place_row_column(const Edges &edges, const Pairs &pairs,
                                 const uint32_t *first_pairs,
                                 const int64_t *origins, const T *column,
                                 T *placed) {
  for (uint64_t p = thread_of_all(); p < pairs.num_pairs; p += num_threads())
    if (pairs.count(p) == 1) {
      RowOfEdges row = row_of(edges, pairs.rows[p]);
      placed[row.first + (p - first_pairs[pairs.rows[p]]) * row.step] =
          column[origins[pairs.starts[p]]];
    }
}

} // namespace

// Writes the places of all edges.
extern "C" __global__ void place_words_warp_mapped(
    const uint64_t *keys, const uint64_t *order, const uint32_t *starts,
    const uint32_t *rows, const uint32_t *stops, uint64_t num_pairs,
    const uint32_t *origins, const uint32_t *sizes, const uint32_t *lines,
    uint64_t num_slices, const uint32_t *renamed, uint32_t segment_size,
    uint32_t num_banks, uint32_t *words) {
  Slices slices{keys,       order,   {starts, rows, stops, num_pairs},
                origins,    sizes,   lines,
                num_slices, renamed, segment_size,
                num_banks};
  uint32_t low = 0;
  for_each_half(slices, [&](uint64_t word, int half, uint32_t place, uint32_t) {
    if (half)
      words[word] = place << 16 | low;
    low = place;
  });
}

// Brings the values of edges to their places in tiles, and those of edges that
// stay in rows to their positions there.
//
//   edges_of_keys: [num_edges]      the edge that each key comes from
//   column: [num_edges]             by edges, on the host's order
#define SIGPS_PLACE_COLUMN(bits)                                               \
  extern "C" __global__ void place_tile_column_##bits##_warp_mapped(           \
      const uint64_t *keys, const uint64_t *order, const uint32_t *starts,     \
      const uint32_t *rows, const uint32_t *stops, uint64_t num_pairs,         \
      const uint32_t *origins, const uint32_t *sizes, const uint32_t *lines,   \
      uint64_t num_slices, const uint32_t *renamed, uint32_t segment_size,     \
      uint32_t num_banks, const int64_t *edges_of_keys,                        \
      const uint##bits##_t *column, uint##bits##_t *placed) {                  \
    place_tile_column(Slices{keys,                                             \
                             order,                                            \
                             {starts, rows, stops, num_pairs},                 \
                             origins,                                          \
                             sizes,                                            \
                             lines,                                            \
                             num_slices,                                       \
                             renamed,                                          \
                             segment_size,                                     \
                             num_banks},                                       \
                      edges_of_keys, column, placed);                          \
  }                                                                            \
  extern "C" __global__ void place_row_column_##bits##_thread_mapped(          \
      const __grid_constant__ Edges edges, const uint32_t *starts,             \
      const uint32_t *rows, const uint32_t *stops, uint64_t num_pairs,         \
      const uint32_t *first_pairs, const int64_t *edges_of_keys,               \
      const uint##bits##_t *column, uint##bits##_t *placed) {                  \
    place_row_column(edges, Pairs{starts, rows, stops, num_pairs},             \
                     first_pairs, edges_of_keys, column, placed);              \
  }

SIGPS_PLACE_COLUMN(8)
SIGPS_PLACE_COLUMN(16)
SIGPS_PLACE_COLUMN(32)
SIGPS_PLACE_COLUMN(64)
