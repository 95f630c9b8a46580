import { assert, RuvLLMError } from '../core/errors.ts';
import type { GgufFile } from '../gguf/index.ts';
import {
  alignArena,
  type KernelPack,
  type KernelPackFactory,
  kvLayerBytes,
  type KvRegion,
  type Offset,
  PAGE_TOKENS,
} from '../kernels/contract.ts';
import { createWeightLoader } from '../models/weight-loader.ts';
import { createBillingSink, createPackSink } from '../models/weight-sinks.ts';
import { cutPatches } from './patches.ts';
import { readVisionShape, type VisionShape } from './vision-shape.ts';
import { readVisionWeights, type VisionWeights } from './vision-weights.ts';

/** An image encoder in memory. */
export interface VisionEncoder {
  readonly shape: VisionShape;
  /** Bytes of weights and buffers. */
  readonly sizeBytes: number;
  /** Rows of the language model, f32[numTokens × outputDim], from f32[3 × imageSize × imageSize], normalized. One call at a time. */
  encode(pixels: Float32Array): Promise<Float32Array>;
  dispose(): Promise<void>;
}

/** Checks the metadata and every tensor of a projector without loading it. */
export function planVision(gguf: GgufFile, factory: Pick<KernelPackFactory, 'matrixBytes'>) {
  const shape = readVisionShape(gguf);
  const sink = createBillingSink(factory as KernelPackFactory);
  readVisionWeights(createWeightLoader(gguf, sink), shape);
  const { arenaBytes: weightBytes, maxCols } = sink.bill();
  const sizes = bufferSizes(shape);
  const bufferBytes = Object.values(sizes).reduce((sum, size) => sum + alignArena(size * 4), 0);
  const layerBytes = kvLayerBytes(shape.numHeads, shape.headDim, 'f32');
  const numPages = Math.ceil(shape.numPatches / PAGE_TOKENS);
  return { shape, sizes, maxCols, layerBytes, numPages, sizeBytes: weightBytes + bufferBytes + numPages * layerBytes };
}

/** Loads a projector into an arena of its own. */
export async function openVisionEncoder(
  gguf: GgufFile,
  factory: KernelPackFactory,
  { numThreads }: { readonly numThreads: number },
): Promise<VisionEncoder> {
  const plan = planVision(gguf, factory);
  const { shape, sizes, layerBytes, numPages, sizeBytes } = plan;
  if (sizeBytes > factory.maxArenaBytes) {
    const reason = factory.limitReason === undefined ? '' : `: ${factory.limitReason}`;
    const message = `the projector requires ${sizeBytes} bytes, kernels "${factory.name}" can address ${factory.maxArenaBytes}${reason}`;
    throw new RuvLLMError('out_of_memory', message, { data: { sizeBytes, limitBytes: factory.maxArenaBytes } });
  }
  const pack = await factory.create({
    arenaBytes: sizeBytes,
    numThreads,
    maxTokens: shape.numPatches,
    maxCols: plan.maxCols,
  });
  try {
    const start = pack.arena.usedBytes;
    const weights = readVisionWeights(
      createWeightLoader(
        gguf,
        createPackSink(pack, () => {}),
      ),
      shape,
    );
    const kv: KvRegion = {
      base: pack.arena.allocate(numPages * layerBytes, 'keys and values of an image'),
      pageBytes: layerBytes,
      layerBytes,
      numPages,
      numKvHeads: shape.numHeads,
      headDim: shape.headDim,
      precision: 'f32',
    };
    const buffers = Object.fromEntries(
      Object.entries(sizes).map(([name, size]) => [name, pack.arena.allocate(size * 4, name)]),
    ) as Record<BufferName, Offset>;
    const usedBytes = pack.arena.usedBytes - start;
    assert(usedBytes === sizeBytes, `planned ${sizeBytes} bytes, took ${usedBytes}`);
    writeConstants(pack, buffers, shape, numPages);
    return createEncoder({ pack, kv, buffers, shape, weights }, sizeBytes);
  } catch (error) {
    await pack.dispose();
    throw error;
  }
}

interface Encoder {
  readonly pack: KernelPack;
  readonly kv: KvRegion;
  readonly buffers: Readonly<Record<BufferName, Offset>>;
  readonly shape: VisionShape;
  readonly weights: VisionWeights;
}

type BufferName = keyof ReturnType<typeof bufferSizes>;

/** Number of 4-byte elements of each buffer; N patches. */
function bufferSizes(shape: VisionShape) {
  const { numPatches: N, embeddingDim: dim, feedForwardDim, patchSize, numTokens, outputDim } = shape;
  return {
    /** Values of each patch, colour by colour. */
    patches: N * 3 * patchSize ** 2,
    residual: N * dim,
    hidden: N * dim,
    q: N * dim,
    k: N * dim,
    v: N * dim,
    attended: N * dim,
    gate: N * feedForwardDim,
    /** 0, 1, 2 …: positions, and places of keys and values. */
    order: N,
    /** Patches in the order in which the projector joins them. */
    squares: N,
    sequence: 4,
    pageTable: Math.ceil(N / PAGE_TOKENS),
    rows: numTokens * outputDim,
  };
}

function writeConstants(
  { arena }: KernelPack,
  buffers: Encoder['buffers'],
  shape: VisionShape,
  numPages: number,
): void {
  const { numPatches, gridSize, scaleFactor } = shape;
  arena.i32(buffers.order, numPatches).set(Int32Array.from({ length: numPatches }, (_, i) => i));
  arena.i32(buffers.pageTable, numPages).set(Int32Array.from({ length: numPages }, (_, i) => i));
  arena.i32(buffers.sequence, 4).set([0, numPatches, numPatches, 0]);
  const squares: number[] = [];
  for (let y = 0; y < gridSize; y += scaleFactor) {
    for (let x = 0; x < gridSize; x += scaleFactor) {
      for (let dy = 0; dy < scaleFactor; dy++) {
        for (let dx = 0; dx < scaleFactor; dx++) squares.push((y + dy) * gridSize + x + dx);
      }
    }
  }
  arena.i32(buffers.squares, numPatches).set(squares);
}

function createEncoder(encoder: Encoder, sizeBytes: number): VisionEncoder {
  const { pack, buffers, shape, weights } = encoder;
  const { numPatches, imageSize } = shape;
  return {
    shape,
    sizeBytes,
    async encode(pixels) {
      assert(pixels.length === 3 * imageSize ** 2, `${pixels.length} values for an image of ${imageSize} pixels`);
      cutPatches(pixels, shape, pack.arena.f32(buffers.patches, numPatches * 3 * shape.patchSize ** 2));
      embedPatches(encoder);
      for (const layer of weights.layers) runLayer(encoder, layer);
      project(encoder);
      await pack.sync();
      return pack.arena.f32(buffers.rows, shape.numTokens * shape.outputDim).slice();
    },
    dispose: () => pack.dispose(),
  };
}

/** residual = patch · x + position. */
function embedPatches({ pack, buffers, shape, weights }: Encoder): void {
  const { numPatches } = shape;
  const { residual, hidden } = buffers;
  const outputs = [{ ...weights.patches, out: residual, accumulate: false }];
  pack.matmul({ x: buffers.patches, numTokens: numPatches, outputs });
  pack.gatherRows({ table: weights.positions, ids: buffers.order, out: hidden, numRows: numPatches, scale: 1 });
  pack.add({ x: residual, y: hidden, out: residual, count: numPatches * shape.embeddingDim });
}

/** Attention from every patch to all, then a feed-forward layer, both after a norm. */
function runLayer(encoder: Encoder, layer: VisionWeights['layers'][number]): void {
  const { pack, kv, buffers, shape } = encoder;
  const { numPatches: numTokens, numHeads, headDim } = shape;
  const { residual, hidden, q, k, v, attended, gate } = buffers;
  normalize(encoder, layer.attentionNorm);
  pack.matmul({
    x: hidden,
    numTokens,
    outputs: [
      { ...layer.q, out: q, accumulate: false },
      { ...layer.k, out: k, accumulate: false },
      { ...layer.v, out: v, accumulate: false },
    ],
  });
  // One layer of pages is enough: the next layer overwrites them.
  pack.writeKv({ kv, layer: 0, k, v, slots: buffers.order, numTokens });
  const where = { kv, layer: 0, q, out: attended, sequences: buffers.sequence, pageTables: buffers.pageTable };
  const scale = 1 / Math.sqrt(headDim);
  pack.attention({ ...where, numSequences: 1, numHeads, scale, window: 0, softcap: 0, seesAll: true });
  pack.matmul({ x: attended, numTokens, outputs: [{ ...layer.output, out: residual, accumulate: true }] });
  normalize(encoder, layer.feedForwardNorm);
  pack.matmul({ x: hidden, numTokens, outputs: [{ ...layer.up, out: gate, accumulate: false }] });
  pack.gelu({ x: gate, count: numTokens * shape.feedForwardDim, formula: 'tanh' });
  pack.matmul({ x: gate, numTokens, outputs: [{ ...layer.down, out: residual, accumulate: true }] });
}

/** hidden = norm(residual). */
function normalize({ pack, buffers, shape }: Encoder, norm: VisionWeights['finalNorm']): void {
  const { numPatches: numRows, embeddingDim: dim, epsilon } = shape;
  pack.layerNorm({ x: buffers.residual, ...norm, out: buffers.hidden, numRows, dim, epsilon });
}

/** rows = projection · the joined squares of norm(residual). */
function project(encoder: Encoder): void {
  const { pack, buffers, shape, weights } = encoder;
  normalize(encoder, weights.finalNorm);
  const { hidden, squares, residual, rows } = buffers;
  pack.copyRows({ x: hidden, rows: squares, out: residual, numRows: shape.numPatches, dim: shape.embeddingDim });
  const outputs = [{ weight: weights.projection, bias: null, out: rows, accumulate: false }];
  pack.matmul({ x: residual, numTokens: shape.numTokens, outputs });
}
