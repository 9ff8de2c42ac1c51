// Appended to kernels/cuda/lease.cu by crossing.py: what GPUs do between
// supersteps, again and again, and how long that takes.

// The inter-GPU barrier: counters of all blocks, one barrier of the grid, a
// report from every rank to every other. As end_superstep() after a push.
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, SIGPS_BLOCKS)
    run_barriers(const __grid_constant__ Lease lease, uint32_t count,
                 uint64_t *time) {
  __shared__ NextSuperstep now;
  __shared__ AllGpus all_gpus;
  uint32_t generation = load_acquire(&lease.control->barrier.generation);
  if (threadIdx.x == 0) {
    now = lease.control->next;
    now.direction = PUSH;
    has_published() = 0;
  }
  wait_for_all(&lease.control->barrier, generation);
  uint64_t began = nanoseconds();
  for (uint32_t i = 0; i < count; i++) {
    release_to_peers();
    wait_for_all(&lease.control->barrier, generation,
                 [&] { wait_for_all_gpus(lease, now, all_gpus); });
  }
  if (thread_of_grid() == 0)
    *time = nanoseconds() - began;
}

// Records and bits of all vertices that sent to this superstep go to all
// that have ghosts of them.
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, SIGPS_BLOCKS)
    run_publishing(const __grid_constant__ Lease lease, uint32_t count,
                   uint64_t *time) {
  __shared__ NextSuperstep now;
  uint32_t generation = load_acquire(&lease.control->barrier.generation);
  if (threadIdx.x == 0) {
    now = lease.control->next;
    now.superstep -= 1;
    has_published() = 0;
  }
  wait_for_all(&lease.control->barrier, generation);
  uint64_t began = nanoseconds();
  for (uint32_t i = 0; i < count; i++) {
    publish_bits(lease, now);
    release_to_peers();
    wait_for_all(&lease.control->barrier, generation);
  }
  if (thread_of_grid() == 0) {
    time[0] = nanoseconds() - began;
    time[1] = lease.halo.num_published[lease.halo.rank];
    lease.halo.num_published[lease.halo.rank] = 0;
  }
}
