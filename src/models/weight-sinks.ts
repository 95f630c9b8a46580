import { alignArena, type KernelPack, type KernelPackFactory, type WeightImages } from '../kernels/contract.ts';
import { rowBytes } from '../quant/index.ts';
import type { WeightSink } from './weight-loader.ts';
import type { PlacedWeight } from './weight-store.ts';

/** The cost of loading the weights. */
export interface WeightBill {
  /** In the arena, including alignment. */
  readonly arenaBytes: number;
  readonly fileBytes: number;
  readonly maxCols: number;
  /** In the order they are loaded. */
  readonly weights: readonly PlacedWeight[];
}

/** A sink that adds up sizes without loading. */
export function createBillingSink(factory: KernelPackFactory): WeightSink & { bill(): WeightBill } {
  let [arenaBytes, fileBytes, maxCols] = [0, 0, 0];
  const weights: PlacedWeight[] = [];
  return {
    matrix({ name, type, numRows, numCols }) {
      const sizeBytes = factory.matrixBytes(type, numRows, numCols, name);
      weights.push({ name, type, numRows, numCols, offset: arenaBytes, sizeBytes });
      arenaBytes += alignArena(sizeBytes);
      fileBytes += numRows * rowBytes(type, numCols);
      maxCols = Math.max(maxCols, numCols);
      return { name, type, numRows, numCols, offset: 0, sizeBytes };
    },
    vector(name, length) {
      weights.push({ name, type: null, numRows: 1, numCols: length, offset: arenaBytes, sizeBytes: length * 4 });
      arenaBytes += alignArena(length * 4);
      return 0;
    },
    bill: () => ({ arenaBytes, fileBytes, maxCols, weights }),
  };
}

/** A sink that loads into the pack; calls `onMatrix` with the file bytes of each loaded matrix. */
export function createPackSink(pack: KernelPack, onMatrix: (fileBytes: number) => void): WeightSink {
  return {
    matrix(source) {
      const weight = pack.loadMatrix(source);
      onMatrix(source.numRows * rowBytes(source.type, source.numCols));
      return weight;
    },
    vector(name, length, read) {
      const offset = pack.arena.allocate(length * 4, name);
      pack.arena.f32(offset, length).set(read());
      return offset;
    },
  };
}

/** A sink for weights that are already in the arena: only returns their places. */
export function createPlacedSink(pack: KernelPack, images: WeightImages): WeightSink {
  return {
    matrix: (source) => images.placeMatrix(source),
    vector: (name, length) => pack.arena.allocate(length * 4, name),
  };
}
