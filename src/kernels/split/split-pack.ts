import { assert } from '../../core/errors.ts';
import type {
  GatedMatmulOp,
  KernelPack,
  KernelPackFactory,
  KernelPackOptions,
  MatmulOp,
  MatrixSource,
  Offset,
  WeightMatrix,
} from '../contract.ts';
import { checkedMatrixBytes } from '../matrix-bytes.ts';
import { createExchange, type SideOfOperation } from './exchange.ts';
import type { SplitMatrix } from './job-reader.ts';
import { SIDES, type Side } from './sides.ts';
import type { Visit, Visitor } from './visit.ts';
import * as attentionOps from './visit-attention.ts';
import * as elementwiseOps from './visit-elementwise.ts';
import * as productOps from './visit-products.ts';
import * as stateOps from './visit-states.ts';
import * as vectorOps from './visit-vectors.ts';

/** Where the weights of a model go. */
export interface SplitOptions {
  readonly gpu: KernelPackFactory;
  /** Computes while the caller waits. */
  readonly cpu: KernelPackFactory;
  /** The side of a matrix by its name. */
  readonly sideOfMatrix: (name: string) => Side;
  /** For tests. Default: operations without weights run where their first input is. */
  readonly sideOfOperation?: SideOfOperation;
  /** Arena bytes of each side; default: all bytes on both. */
  readonly sideBytes?: Readonly<Record<Side, number>>;
}

/** Kernels that run a model on two packs: an operation runs where its weights are, and ranges are copied where the side changes. */
export function createSplitPackFactory(options: SplitOptions): KernelPackFactory {
  const { gpu, cpu, sideOfMatrix } = options;
  return {
    name: `${gpu.name} + ${cpu.name}`,
    maxArenaBytes: gpu.maxArenaBytes + cpu.maxArenaBytes,
    matrixBytes: (type, numRows, numCols, name = '') =>
      ({ gpu, cpu })[sideOfMatrix(name)].matrixBytes(type, numRows, numCols),
    create: (packOptions) => createSplitPack(options, packOptions),
  };
}

async function createSplitPack(
  { gpu, cpu, sideOfMatrix, sideOfOperation = () => null, sideBytes }: SplitOptions,
  options: KernelPackOptions,
): Promise<KernelPack> {
  const { arenaBytes } = options;
  const bytesOf = (side: Side): number => sideBytes?.[side] ?? arenaBytes;
  const cpuPack = await cpu.create({ ...options, arenaBytes: bytesOf('cpu') });
  const gpuPack = await gpu.create({ ...options, arenaBytes: bytesOf('gpu') }).catch(async (error: unknown) => {
    await cpuPack.dispose();
    throw error;
  });
  assert(cpuPack.finish !== undefined, `the ${cpuPack.name} kernels cannot be the CPU side`);
  const packs = { gpu: gpuPack, cpu: cpuPack };
  const { arena, add, replay, sync, finish } = createExchange({ arenaBytes, packs, sideOfOperation });

  const record =
    <Op>(name: OperationName, visitor: Visitor<Op>) =>
    (op: Op): void =>
      add({
        name,
        visit: (visit: Visit) => {
          const translated = visitor(op, visit);
          return (side) => (packs[side][name] as (op: Op) => void)(translated);
        },
      });

  const rmsNorm = record('rmsNorm', elementwiseOps.rmsNorm);
  const matmulOnSide = record('matmul', productOps.matmul);
  const gatedMatmulOnSide = record('gatedMatmul', productOps.gatedMatmul);
  const gatedActivation = record('gatedActivation', elementwiseOps.gatedActivation);

  /** Products with weights of both sides are one operation for each. */
  function matmul(op: MatmulOp): void {
    const { norm = null, numTokens, outputs } = op;
    const groups = SIDES.map((side) => outputs.filter(({ weight }) => sideOf(weight) === side));
    const used = groups.filter((group) => group.length > 0);
    if (used.length < 2) return matmulOnSide(op);
    // Once, because its result may replace its input.
    if (norm !== null) {
      const { weight, epsilon, scratch: out } = norm;
      rmsNorm({ x: op.x, weight, out, numRows: numTokens, dim: outputs[0]!.weight.numCols, epsilon });
    }
    const x = norm?.scratch ?? op.x;
    for (const group of used) matmulOnSide({ x, norm: null, numTokens, outputs: group });
  }
  function gatedMatmul(op: GatedMatmulOp): void {
    const { x, numTokens, norm, gate, up, out, scratch, activation } = op;
    if (sideOf(gate.weight) === sideOf(up.weight)) return gatedMatmulOnSide(op);
    const outputs = [
      { ...gate, out, accumulate: false },
      { ...up, out: scratch, accumulate: false },
    ];
    matmul({ x, numTokens, norm: norm ?? null, outputs });
    gatedActivation({ gate: out, up: scratch, out, count: numTokens * gate.weight.numRows, activation });
  }

  return {
    name: `${gpuPack.name} + ${cpuPack.name}`,
    numThreads: Math.max(gpuPack.numThreads, cpuPack.numThreads),
    arena,
    allocateOn: arena.allocateOn,
    loadMatrix(source) {
      checkedMatrixBytes(source);
      return loadOnSide(source, sideOfMatrix(source.name));
    },
    matmul,
    gatedMatmul,
    rmsNorm,
    gatedActivation,
    gatherRows: record('gatherRows', productOps.gatherRows),
    experts: record('experts', productOps.experts),
    lowRankDelta: record('lowRankDelta', productOps.lowRankDelta),
    layerNorm: record('layerNorm', elementwiseOps.layerNorm),
    rope: record('rope', attentionOps.rope),
    writeKv: record('writeKv', attentionOps.writeKv),
    rotateAndStore: record('rotateAndStore', attentionOps.rotateAndStore),
    packPages: record('packPages', attentionOps.packPages),
    attention: record('attention', attentionOps.attention),
    gelu: record('gelu', elementwiseOps.gelu),
    add: record('add', elementwiseOps.pairwise),
    multiply: record('multiply', elementwiseOps.pairwise),
    sigmoidGate: record('sigmoidGate', elementwiseOps.pairwise),
    copyRows: record('copyRows', elementwiseOps.copyRows),
    copyBlocks: record('copyBlocks', elementwiseOps.copyBlocks),
    softcap: record('softcap', elementwiseOps.softcap),
    scale: record('scale', elementwiseOps.scale),
    causalConv: record('causalConv', stateOps.causalConv),
    selectiveScan: record('selectiveScan', stateOps.selectiveScan),
    deltaScan: record('deltaScan', stateOps.deltaScan),
    mixStreams: record('mixStreams', elementwiseOps.mixStreams),
    matchLengths: record('matchLengths', elementwiseOps.matchLengths),
    sparsify: record('sparsify', elementwiseOps.sparsify),
    distances: record('distances', vectorOps.distances),
    searchGraph: record('searchGraph', vectorOps.searchGraph),
    pickLinks: record('pickLinks', vectorOps.pickLinks),
    topLogits: record('topLogits', elementwiseOps.topLogits),
    replay,
    sync,
    ...(gpuPack.finish === undefined ? {} : { finish }),
    copyBytes: (from, to, sizeBytes) =>
      add({
        name: 'copyBytes',
        visit(visit) {
          const [source, target] = [visit.read(from, sizeBytes), visit.write(to, sizeBytes)];
          return (side) => copyOnSide(packs[side], source, target, sizeBytes);
        },
      }),
    async dispose() {
      await gpuPack.dispose();
      await cpuPack.dispose();
    },
  };

  function loadOnSide(source: MatrixSource, side: Side): SplitMatrix {
    const { matrixBytes } = { gpu, cpu }[side];
    const { name, type, numRows, numCols } = source;
    const offset = arena.reserveMatrix(matrixBytes(type, numRows, numCols), name);
    const onSide = packs[side].loadMatrix(source);
    return { name, type, numRows, numCols, offset, sizeBytes: onSide.sizeBytes, side, onSide };
  }
}

type OperationName = Exclude<
  keyof KernelPack,
  | 'name'
  | 'numThreads'
  | 'arena'
  | 'images'
  | 'missing'
  | 'replay'
  | 'sync'
  | 'finish'
  | 'prepare'
  | 'dispose'
  | 'loadMatrix'
  | 'copyBytes'
  | 'allocateOn'
>;

const sideOf = (weight: WeightMatrix): Side => (weight as SplitMatrix).side;

function copyOnSide(pack: KernelPack, from: Offset, to: Offset, sizeBytes: number): void {
  if (pack.copyBytes !== undefined) return pack.copyBytes(from, to, sizeBytes);
  pack.finish!();
  pack.arena.u8(to, sizeBytes).set(pack.arena.u8(from, sizeBytes));
}
