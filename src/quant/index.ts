export type { ErrorWeights, LevelCoding, QuantFormat } from './format.ts';
export { formatByGgufId, quantFormats } from './registry.ts';
export { dequantizeRow, quantizeRow, rowBytes } from './rows.ts';
export type { RowOffsets } from './rows.ts';
