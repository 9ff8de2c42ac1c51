// One block of threads on the host: fibers of one thread, which take turns at
// barriers, shuffles and atomics.

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sched.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static
using std::max;
using std::memcpy;
using std::min;

struct uint2 {
  uint32_t x, y;
};
struct alignas(8) uint4 {
  uint32_t x, y, z, w;
};

static struct {
  uint32_t x;
} threadIdx, blockIdx;
static struct {
  uint32_t x = SIGPS_THREADS;
} blockDim;
static struct {
  uint32_t x = 1;
} gridDim; // one block, but where each of several is another library's

struct Fiber {
  ucontext_t context;
  jmp_buf at; // where it goes on: swapcontext() would ask the system each time
  std::vector<char> stack;
  bool has_begun, is_done;
};
static Fiber fibers[SIGPS_THREADS];
static jmp_buf next_turn;
static std::function<void()> work;

static void take_turns() {
  uint32_t mine = threadIdx.x;
  if (_setjmp(fibers[mine].at) == 0)
    _longjmp(next_turn, 1);
  threadIdx.x = mine;
}

// For another block or rank, whose thread may have none of the cores.
static void leave_core() {
  static uint32_t turns;
  if (++turns % 8 == 0)
    usleep(20);
  else
    sched_yield();
}

static void run_fiber() {
  work();
  fibers[threadIdx.x].is_done = true;
  _longjmp(next_turn, 1);
}

static void give_turn(Fiber &fiber) {
  if (_setjmp(next_turn) != 0)
    return;
  if (fiber.has_begun)
    _longjmp(fiber.at, 1);
  fiber.has_begun = true;
  setcontext(&fiber.context);
}

static void run_block(std::function<void()> each) {
  work = each;
  for (Fiber &fiber : fibers) {
    getcontext(&fiber.context);
    fiber.stack.resize(1 << 16);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.has_begun = fiber.is_done = false;
    makecontext(&fiber.context, run_fiber, 0);
  }
  for (bool all_done = false; !all_done;) {
    all_done = true;
    for (uint32_t i = 0; i < SIGPS_THREADS; i++) {
      threadIdx.x = i;
      if (!fibers[i].is_done)
        give_turn(fibers[i]);
      all_done = all_done && fibers[i].is_done;
    }
  }
}

struct Meeting {
  uint32_t arrived, generation;
};
static Meeting of_block, of_warps[SIGPS_THREADS / 32];
static uint64_t exchanged[SIGPS_THREADS];
static bool any_of_block;

static void wait_for(Meeting &meeting, uint32_t size) {
  uint32_t generation = meeting.generation;
  if (++meeting.arrived == size) {
    meeting.arrived = 0;
    meeting.generation++;
  }
  while (meeting.generation == generation)
    take_turns();
}
static void __syncthreads() { wait_for(of_block, SIGPS_THREADS); }
static void __syncwarp() { wait_for(of_warps[threadIdx.x / 32], 32); }

static bool __syncthreads_or(bool value) {
  __syncthreads();
  any_of_block = false;
  __syncthreads();
  any_of_block |= value;
  __syncthreads();
  return any_of_block;
}

template <class T> static T from_lane(T value, uint32_t lane) {
  static_assert(sizeof(T) <= 8);
  memcpy(&exchanged[threadIdx.x], &value, sizeof(T));
  __syncwarp();
  T found;
  memcpy(&found, &exchanged[threadIdx.x / 32 * 32 + lane], sizeof(T));
  __syncwarp();
  return found;
}
template <class T> static T __shfl_sync(uint32_t, T value, uint32_t lane) {
  return from_lane(value, lane % 32);
}
template <class T> static T __shfl_xor_sync(uint32_t, T value, uint32_t mask) {
  return from_lane(value, (threadIdx.x % 32) ^ mask);
}
template <class T>
static T __shfl_down_sync(uint32_t, T value, uint32_t distance) {
  return from_lane(value, min(threadIdx.x % 32 + distance, 31u));
}
template <class T>
static T __shfl_up_sync(uint32_t, T value, uint32_t distance) {
  uint32_t lane = threadIdx.x % 32;
  return from_lane(value, lane < distance ? lane : lane - distance);
}
// Fibers do not know who is beside them: lanes of a warp that are not all there each stand alone.
static uint32_t __activemask() { return 1u << threadIdx.x % 32; }
static uint32_t __ballot_sync(uint32_t, bool value) {
  exchanged[threadIdx.x] = value;
  __syncwarp();
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 32; i++)
    bits |= uint32_t(exchanged[threadIdx.x / 32 * 32 + i]) << i;
  __syncwarp();
  return bits;
}
static uint32_t __match_any_sync(uint32_t, uint32_t value) {
  exchanged[threadIdx.x] = value;
  __syncwarp();
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < 32; i++)
    lanes |= uint32_t(exchanged[threadIdx.x / 32 * 32 + i] == value) << i;
  __syncwarp();
  return lanes;
}
template <class T> static T __ldcs(const T *at) { return *at; }
static int __popc(uint32_t bits) { return __builtin_popcount(bits); }
static int __ffs(uint32_t bits) { return __builtin_ffs(int(bits)); }

// What stands there before `next` is written, which is of it: other blocks may
// be other threads of the host.
template <class T, class Next> static T replace_at(T *at, Next next) {
  T found, wanted;
  __atomic_load(at, &found, __ATOMIC_SEQ_CST);
  do
    wanted = next(found);
  while (!__atomic_compare_exchange(at, &found, &wanted, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return found;
}

template <class T> static T atomicCAS(T *at, T old, T next) {
  take_turns(); // others may be first
  return replace_at(at, [&](T found) { return found == old ? next : found; });
}
template <class T, class U> static T atomicAdd(T *at, U value) {
  return replace_at(at, [&](T found) { return T(found + T(value)); });
}
static uint32_t atomicOr(uint32_t *at, uint32_t bits) {
  return replace_at(at, [&](uint32_t found) { return found | bits; });
}
static uint32_t atomicAnd(uint32_t *at, uint32_t bits) {
  return replace_at(at, [&](uint32_t found) { return found & bits; });
}
template <class T> static T atomicMin(T *at, T value) {
  take_turns();
  return replace_at(at, [&](T found) { return min(found, value); });
}
template <class T> static T atomicExch(T *at, T value) {
  take_turns();
  return replace_at(at, [&](T) { return value; });
}
