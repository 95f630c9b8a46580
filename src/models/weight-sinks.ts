import { alignArena, type KernelPack, type KernelPackFactory } from '../kernels/contract.ts';
import { rowBytes } from '../quant/index.ts';
import type { WeightSink } from './weight-loader.ts';

/** What loading the weights will take. */
export interface WeightBill {
  /** In the arena, alignment included. */
  readonly arenaBytes: number;
  /** Read from the file. */
  readonly fileBytes: number;
  /** Columns of the widest matrix. */
  readonly maxCols: number;
}

/** A sink that loads nothing and adds up. */
export function createBillingSink(factory: KernelPackFactory): WeightSink & { bill(): WeightBill } {
  let [arenaBytes, fileBytes, maxCols] = [0, 0, 0];
  return {
    matrix({ name, type, numRows, numCols }) {
      const sizeBytes = factory.matrixBytes(type, numRows, numCols);
      arenaBytes += alignArena(sizeBytes);
      fileBytes += numRows * rowBytes(type, numCols);
      maxCols = Math.max(maxCols, numCols);
      return { name, type, numRows, numCols, offset: 0, sizeBytes };
    },
    vector(_name, length) {
      arenaBytes += alignArena(length * 4);
      return 0;
    },
    bill: () => ({ arenaBytes, fileBytes, maxCols }),
  };
}

/** A sink that loads into the pack; `onMatrix` hears the file bytes of each matrix once it is in. */
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
