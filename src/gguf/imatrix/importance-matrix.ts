/** By tensor name, f32[numMatrices × numCols]: mean squares of the inputs of each column; a stack of experts is several matrices. */
export type ImportanceMatrix = ReadonlyMap<string, Float32Array>;
