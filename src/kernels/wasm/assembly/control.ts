// Memory map of the first WASM page: static tables of this module from 0 on, the control block at CONTROL.
// Each contended word has its own cache line.
export const CONTROL: usize = 61440;
const GENERATION: usize = CONTROL; //          incremented to start a program; helpers wait on it
const STOP: usize = CONTROL + 64; //           1: helpers return
const BARRIER_COUNT: usize = CONTROL + 128; // threads that have arrived
const BARRIER_PHASE: usize = CONTROL + 192; // incremented when the last one arrives
const SLEEPERS: usize = CONTROL + 256; //      threads asleep in a barrier: only then is a wake-up worth a syscall
const PROGRAM: usize = CONTROL + 320; //       [address, number of operations]
const NUM_THREADS: usize = CONTROL + 384;
const ABANDONED: usize = CONTROL + 512; //      1: a helper died; others must not wait for it forever
const BAD_HALVES: usize = CONTROL + 448; //     1: an infinity or NaN was written to a KV page; never reset

// How long a thread spins before it sleeps. A decode operation takes 10-500 us, so most waits end while spinning (about
// 20-50 us); on a busy core a sleeping thread yields its share instead of burning it.
const SPINS_IN_BARRIER: i32 = 20000;
const SPINS_FOR_WORK: i32 = 60000;

export function barrier(numThreads: i32): void {
  if (numThreads == 1) return;
  const phase = atomic.load<i32>(BARRIER_PHASE);
  if (atomic.add<i32>(BARRIER_COUNT, 1) == numThreads - 1) {
    atomic.store<i32>(BARRIER_COUNT, 0);
    atomic.add<i32>(BARRIER_PHASE, 1);
    if (atomic.load<i32>(SLEEPERS) > 0) atomic.notify(BARRIER_PHASE, numThreads);
    return;
  }
  // Before the wait, too: a helper that died earlier has already moved the phase for the last time.
  if (!atomic.load<i32>(ABANDONED)) waitForPhaseAfter(phase);
  if (atomic.load<i32>(ABANDONED)) unreachable();
}

function waitForPhaseAfter(phase: i32): void {
  for (let spin = 0; spin < SPINS_IN_BARRIER; spin++) {
    if (atomic.load<i32>(BARRIER_PHASE) != phase) return;
  }
  atomic.add<i32>(SLEEPERS, 1);
  while (atomic.load<i32>(BARRIER_PHASE) == phase) atomic.wait<i32>(BARRIER_PHASE, phase, -1);
  atomic.sub<i32>(SLEEPERS, 1);
}

/** Called for a helper that trapped: all others leave their barrier with a trap. */
export function abandonProgram(): void {
  atomic.store<i32>(ABANDONED, 1);
  atomic.add<i32>(BARRIER_PHASE, 1);
  atomic.notify(BARRIER_PHASE, -1);
}

/** Publishes a program to the helpers; the caller then runs it as thread 0. */
export function publish(program: usize, numOps: i32, numThreads: i32): void {
  store<usize>(PROGRAM, program);
  store<i32>(PROGRAM, numOps, 8);
  store<i32>(NUM_THREADS, numThreads);
  atomic.add<i32>(GENERATION, 1);
  atomic.notify(GENERATION, numThreads);
}

export function stop(numThreads: i32): void {
  atomic.store<i32>(STOP, 1);
  atomic.add<i32>(GENERATION, 1);
  atomic.notify(GENERATION, numThreads);
}

/** Blocks until there is a program newer than `last`; returns its generation, or -1 to stop. */
export function waitForProgram(last: i32): i32 {
  for (let spin = 0; spin < SPINS_FOR_WORK; spin++) {
    if (atomic.load<i32>(GENERATION) != last) break;
  }
  while (atomic.load<i32>(GENERATION) == last) atomic.wait<i32>(GENERATION, last, -1);
  return atomic.load<i32>(STOP) ? -1 : atomic.load<i32>(GENERATION);
}

export function generation(): i32 { return atomic.load<i32>(GENERATION); }
export function programAddress(): usize { return load<usize>(PROGRAM); }
export function programLength(): i32 { return load<i32>(PROGRAM, 8); }
export function programThreads(): i32 { return load<i32>(NUM_THREADS); }

// Handling infinity and NaN costs a quarter of decode attention's speed, so it starts only once one was written.
export function noteBadHalf(): void { atomic.store<i32>(BAD_HALVES, 1); }
export function hasBadHalves(): bool { return load<i32>(BAD_HALVES) != 0; }

/** Bytes of a record: its 32 words; with 64-bit addresses, as many upper halves follow them. */
export const RECORD_BYTES: usize = sizeof<usize>() == 8 ? 256 : 128;

/** An address or a size in bytes among an operation's words; `at` is the byte offset of its lower half. */
// @ts-ignore: decorator
@inline
export function address(op: usize, at: usize): usize {
  if (sizeof<usize>() == 4) return load<u32>(op + at);
  return <usize>load<u32>(op + at) | (<usize>load<u32>(op + at, 128) << 32);
}

/** Takes the next chunk of an operation's work. */
// @ts-ignore: decorator
@inline
export function takeChunk(op: usize): i32 { return atomic.add<i32>(op, 1, 124); }
