// TypeScript records a step's operations as 128-byte records; all threads run them here in lockstep:
// word 0 the operation, word 1 whether a barrier follows, words 2-30 arguments, word 31 the chunk counter.
import { abandonProgram, barrier, generation, programAddress, programLength, programThreads, publish, RECORD_BYTES, stop, waitForProgram } from './control';
import { matmulOp, roundOp } from './matmul';
import { gatherOp } from './gather';
import { repackOp } from './repack';
import { copyBlocksOp, copyRowsOp, layerNormOp, mapOp, rmsNormOp, ropeOp } from './elementwise';
import { attentionOp, writeKvOp } from './attention';
import { packPagesOp } from './kv-pages';
import { lowRankDownOp, lowRankUpOp } from './low-rank';
import { distancesOp } from './distances';
import { pickLinksOp, searchGraphOp } from './graph';
import { topLogitsOp } from './top-logits';
import { causalConvOp, deltaScanOp, selectiveScanOp } from './states';
import { matchLengthsOp, mixStreamsOp, sparsifyOp } from './streams';
import { combineOp, expertsOp, planExpertsOp, roundExpertsOp, routeOp } from './experts';

const OP_ROUND: i32 = 0;
const OP_MATMUL: i32 = 1;
const OP_GATHER: i32 = 2;
const OP_RMS_NORM: i32 = 3;
const OP_ROPE: i32 = 4;
const OP_WRITE_KV: i32 = 5;
const OP_ATTENTION: i32 = 6;
const OP_MAP: i32 = 7;
const OP_COPY_ROWS: i32 = 8;
const OP_REPACK: i32 = 9;
const OP_PACK_PAGES: i32 = 10;
const OP_LOW_RANK_DOWN: i32 = 11;
const OP_LOW_RANK_UP: i32 = 12;
const OP_DISTANCES: i32 = 13;
const OP_TOP_LOGITS: i32 = 15;
const OP_LAYER_NORM: i32 = 16;
const OP_SEARCH_GRAPH: i32 = 17;
const OP_PICK_LINKS: i32 = 18;
const OP_CAUSAL_CONV: i32 = 19;
const OP_SELECTIVE_SCAN: i32 = 20;
const OP_ROUTE: i32 = 21;
const OP_PLAN_EXPERTS: i32 = 22;
const OP_ROUND_EXPERTS: i32 = 23;
const OP_EXPERTS: i32 = 24;
const OP_COMBINE: i32 = 25;
const OP_COPY_BLOCKS: i32 = 26;
const OP_DELTA_SCAN: i32 = 27;
const OP_MIX_STREAMS: i32 = 28;
const OP_MATCH_LENGTHS: i32 = 29;
const OP_SPARSIFY: i32 = 30;

function runProgram(program: usize, numOps: i32, numThreads: i32, scratch: usize): void {
  for (let i = 0; i < numOps; i++) {
    const op = program + <usize>i * RECORD_BYTES;
    const code = load<i32>(op);
    if (code == OP_MATMUL) matmulOp(op, scratch);
    else if (code == OP_ROUND) roundOp(op, scratch);
    else if (code == OP_ATTENTION) attentionOp(op, scratch);
    else if (code == OP_RMS_NORM) rmsNormOp(op);
    else if (code == OP_LAYER_NORM) layerNormOp(op);
    else if (code == OP_ROPE) ropeOp(op);
    else if (code == OP_WRITE_KV) writeKvOp(op);
    else if (code == OP_MAP) mapOp(op, scratch);
    else if (code == OP_GATHER) gatherOp(op);
    else if (code == OP_COPY_ROWS) copyRowsOp(op);
    else if (code == OP_REPACK) repackOp(op, scratch);
    else if (code == OP_LOW_RANK_DOWN) lowRankDownOp(op);
    else if (code == OP_LOW_RANK_UP) lowRankUpOp(op, scratch);
    else if (code == OP_PACK_PAGES) packPagesOp(op, scratch);
    else if (code == OP_DISTANCES) distancesOp(op, scratch);
    else if (code == OP_TOP_LOGITS) topLogitsOp(op);
    else if (code == OP_SEARCH_GRAPH) searchGraphOp(op, scratch);
    else if (code == OP_PICK_LINKS) pickLinksOp(op);
    else if (code == OP_CAUSAL_CONV) causalConvOp(op, scratch);
    else if (code == OP_SELECTIVE_SCAN) selectiveScanOp(op);
    else if (code == OP_EXPERTS) expertsOp(op, scratch);
    else if (code == OP_ROUTE) routeOp(op, scratch);
    else if (code == OP_PLAN_EXPERTS) planExpertsOp(op, scratch);
    else if (code == OP_ROUND_EXPERTS) roundExpertsOp(op, scratch);
    else if (code == OP_COMBINE) combineOp(op);
    else if (code == OP_COPY_BLOCKS) copyBlocksOp(op);
    else if (code == OP_DELTA_SCAN) deltaScanOp(op);
    else if (code == OP_MIX_STREAMS) mixStreamsOp(op);
    else if (code == OP_MATCH_LENGTHS) matchLengthsOp(op);
    else if (code == OP_SPARSIFY) sparsifyOp(op);
    else unreachable();
    if (load<i32>(op, 4)) barrier(numThreads);
  }
}

/** Thread 0: publishes the program to the helpers and takes part; returns when all are done (the last op has a barrier). */
export function run(program: usize, numOps: i32, numThreads: i32, scratch: usize): void {
  const isAlone = numThreads == 1 || (numOps == 1 && isSolo(program));
  if (!isAlone) publish(program, numOps, numThreads);
  runProgram(program, numOps, isAlone ? 1 : numThreads, scratch);
}

/** A search of one vector or one list: waking helpers would cost more than it saves. */
function isSolo(op: usize): bool {
  const code = load<i32>(op);
  return (code == OP_SEARCH_GRAPH || code == OP_PICK_LINKS) && load<i32>(op, 32) == 1;
}

/** Main loop of helper threads, until `stopHelpers`. */
export function help(scratch: usize, started: usize): void {
  let last = generation();
  atomic.add<i32>(started, 1);
  atomic.notify(started, 1);
  while (true) {
    last = waitForProgram(last);
    if (last < 0) return;
    runProgram(programAddress(), programLength(), programThreads(), scratch);
  }
}

export function stopHelpers(numThreads: i32): void { stop(numThreads); }

export function abandon(): void { abandonProgram(); }
