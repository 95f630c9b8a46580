// Graphs of vectors: nearest-neighbour search, and the choice of a node's links. Like the native pack's C, but threads take
// lanes in the order of arrival.
import { address, takeChunk } from './control';
import { byteDot, roundQuery, squareDistance } from './distances';
import { floatDot } from './dot-float';

const LANE_HEADER: usize = 64;

// State of the current operation; each thread has its own instance of the module.
let vectors: usize = 0;
let dim: i32 = 0;
let isBytes: bool = false;
let scales: usize = 0;
let isL2: bool = false;
let rowBytes: usize = 0;
/** The vector to compare with others. */
let probe: usize = 0;
let probeScale: f32 = 0;
let probeSquare: f64 = 0;
/** f32 score, u32 id * 2 (+ 1 once its neighbours are expanded); nearest first. */
let pool: usize = 0;
let poolSize: i32 = 0;
let poolWidth: i32 = 0;

function readTable(op: usize): void {
  vectors = address(op, 8);
  dim = load<i32>(op, 12);
  isBytes = load<i32>(op, 16) != 0;
  scales = address(op, 20);
  isL2 = load<i32>(op, 24) != 0;
  rowBytes = <usize>dim * (isBytes ? 1 : 4);
}

function takeLane(op: usize, lanes: usize, laneBytes: usize): usize { return lanes + <usize>atomic.add<i32>(op, 1, 120) * laneBytes; }

function setProbe(values: usize, scale: f32): void {
  probe = values;
  probeScale = scale;
  if (isBytes && isL2) probeSquare = <f64>scale * <f64>scale * <f64>byteDot(values, values, dim);
}

function setProbeRow(id: u32): void { setProbe(vectors + <usize>id * rowBytes, isBytes ? load<f32>(scales + (<usize>id << 2)) : 0); }

/** Larger is nearer; NaN is farthest. */
function nearness(id: u32): f32 {
  const row = vectors + <usize>id * rowBytes;
  let score: f32;
  if (!isBytes) score = isL2 ? -squareDistance(probe, row, dim) : floatDot(probe, row, dim);
  else {
    const scale = load<f32>(scales + (<usize>id << 2));
    const dot = byteDot(row, probe, dim);
    if (isL2) score = <f32>-(probeSquare + (<f64>byteDot(row, row, dim) * <f64>scale - 2.0 * <f64>dot * <f64>probeScale) * <f64>scale);
    else score = <f32>dot * (probeScale * scale);
  }
  return score > -Infinity ? score : -Infinity;
}

// @ts-ignore: decorator
@inline
function isBefore(at: i32, score: f32, id: u32): bool {
  const entry = pool + (<usize>at << 3);
  const entryScore = load<f32>(entry);
  return entryScore > score || (entryScore == score && load<u32>(entry, 4) >> 1 < id);
}

/** Inserts an entry among the best; returns its index, or `poolWidth` if it is not among them. */
function addToPool(score: f32, id: u32): i32 {
  if (poolSize == poolWidth && isBefore(poolWidth - 1, score, id)) return poolWidth;
  let low = 0;
  let high = poolSize;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(middle, score, id)) low = middle + 1;
    else high = middle;
  }
  const at = pool + (<usize>low << 3);
  if (low == poolWidth || (low < poolSize && load<u32>(at, 4) >> 1 == id)) return poolWidth;
  let last = pool + (<usize>(poolSize < poolWidth ? poolSize : poolWidth - 1) << 3);
  for (; last > at; last -= 8) store<u64>(last, load<u64>(last - 8));
  store<f32>(at, score);
  store<u32>(at, id << 1, 4);
  if (poolSize < poolWidth) poolSize++;
  return low;
}

/** args: 2-6 table, 7 queries, 8 number, 9 links, 10 degree, 11 upper, 12 upper degree, 13 upper at, 14 number of nodes, 15 entry, 16 top level, 17 level, 18 width, 19 ids, 20 scores, 21 lanes, 22 bytes of a lane, 30 lanes taken. */
export function searchGraphOp(op: usize, scratch: usize): void {
  readTable(op);
  const queries = address(op, 28);
  const count = load<i32>(op, 32);
  const links = address(op, 36);
  const degree = load<i32>(op, 40);
  const upper = address(op, 44);
  const upperDegree = load<i32>(op, 48);
  const upperAt = address(op, 52);
  const numNodes = address(op, 56);
  const level = load<i32>(op, 68);
  const ids = address(op, 76);
  const scores = address(op, 80);
  const lane = takeLane(op, address(op, 84), address(op, 88));
  const visited = lane + LANE_HEADER;
  poolWidth = load<i32>(op, 72);
  pool = visited + ((2 * numNodes + 63) & ~(<usize>63));
  const fresh = pool + (<usize>poolWidth << 3);
  for (let i = takeChunk(op); i < count; i = takeChunk(op)) {
    const query = queries + <usize>i * <usize>dim * 4;
    if (isBytes) setProbe(scratch, roundQuery(query, dim, scratch));
    else setProbe(query, 0);
    let entry = load<u32>(op, 60);
    let best = nearness(entry);
    for (let l = load<i32>(op, 64); l > level; l--) {
      for (let next = entry; ; entry = next) {
        const row = upper + <usize>(load<i32>(upperAt + (<usize>entry << 2)) + l - 1) * <usize>upperDegree * 4;
        for (let j = 0; j < upperDegree; j++) {
          const id = load<i32>(row + (<usize>j << 2));
          if (id < 0) break;
          const score = nearness(id);
          if (score > best || (score == best && <u32>id < next)) {
            best = score;
            next = id;
          }
        }
        if (next == entry) break;
      }
    }
    let epoch = load<u32>(lane) + 1;
    if (epoch > 0xffff) {
      memory.fill(visited, 0, numNodes * 2);
      epoch = 1;
    }
    store<u32>(lane, epoch);
    store<u16>(visited + (<usize>entry << 1), <u16>epoch);
    poolSize = 0;
    addToPool(best, entry);
    const rowLength = level == 0 ? degree : upperDegree;
    let cursor = 0;
    while (cursor < poolSize) {
      const tag = load<u32>(pool + (<usize>cursor << 3), 4);
      if (tag & 1) {
        cursor++;
        continue;
      }
      store<u32>(pool + (<usize>cursor << 3), tag | 1, 4);
      const node = <usize>(tag >> 1);
      const row = level == 0
        ? links + node * <usize>degree * 4
        : upper + <usize>(load<i32>(upperAt + (node << 2)) + level - 1) * <usize>upperDegree * 4;
      let numFresh = 0;
      for (let j = 0; j < rowLength; j++) {
        const id = load<i32>(row + (<usize>j << 2));
        if (id < 0) break;
        const mark = visited + (<usize>id << 1);
        if (<u32>load<u16>(mark) == epoch) continue;
        store<u16>(mark, <u16>epoch);
        store<i32>(fresh + (<usize>numFresh << 2), id);
        numFresh++;
      }
      let lowest = cursor + 1;
      for (let j = 0; j < numFresh; j++) {
        const id = load<u32>(fresh + (<usize>j << 2));
        lowest = min(lowest, addToPool(nearness(id), id));
      }
      cursor = lowest;
    }
    const first = <usize>i * <usize>poolWidth;
    for (let j = 0; j < poolWidth; j++) {
      const at = (first + <usize>j) << 2;
      const entryAt = pool + (<usize>j << 3);
      store<i32>(ids + at, j < poolSize ? <i32>(load<u32>(entryAt, 4) >> 1) : -1);
      store<f32>(scores + at, j < poolSize ? load<f32>(entryAt) : -Infinity);
    }
  }
}

/** Whether the probe is nearer to its node than to any node chosen before. */
function isDiverse(score: f32, chosen: usize, count: i32): bool {
  for (let i = 0; i < count; i++) if (nearness(load<u32>(chosen + (<usize>i << 2))) > score) return false;
  return true;
}

/** args: 2-6 table, 7 lists, 8 number, 9 candidates, 10 width, 11 degree, 12 fills, 13 out, 14 number of nodes, 15 lanes, 16 bytes of a lane, 30 lanes taken. */
export function pickLinksOp(op: usize): void {
  readTable(op);
  const lists = address(op, 28);
  const count = load<i32>(op, 32);
  const candidates = address(op, 36);
  const degree = load<i32>(op, 44);
  const isFilled = load<i32>(op, 48) != 0;
  const lane = takeLane(op, address(op, 60), address(op, 64));
  poolWidth = load<i32>(op, 40);
  pool = lane + LANE_HEADER + ((2 * address(op, 56) + 63) & ~(<usize>63));
  for (let i = takeChunk(op); i < count; i = takeChunk(op)) {
    const list = lists + <usize>i * 12;
    const out = address(op, 52) + <usize>i * <usize>degree * 4;
    const node = load<u32>(list);
    const first = candidates + (<usize>load<u32>(list, 4) << 2);
    poolSize = 0;
    setProbeRow(node);
    for (let j = 0, end = load<i32>(list, 8); j < end; j++) {
      const id = load<u32>(first + (<usize>j << 2));
      if (id != node) addToPool(nearness(id), id);
    }
    let numChosen = 0;
    for (let j = 0; j < poolSize && numChosen < degree; j++) {
      const entry = pool + (<usize>j << 3);
      const id = load<u32>(entry, 4) >> 1;
      setProbeRow(id);
      if (!isDiverse(load<f32>(entry), out, numChosen)) continue;
      store<u32>(entry, load<u32>(entry, 4) | 1, 4);
      store<u32>(out + (<usize>numChosen << 2), id);
      numChosen++;
    }
    for (let j = 0; isFilled && j < poolSize && numChosen < degree; j++) {
      const tag = load<u32>(pool + (<usize>j << 3), 4);
      if (tag & 1) continue;
      store<u32>(out + (<usize>numChosen << 2), tag >> 1);
      numChosen++;
    }
    for (; numChosen < degree; numChosen++) store<i32>(out + (<usize>numChosen << 2), -1);
  }
}
