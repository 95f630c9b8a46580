export { type ByteSource, createMemorySource } from '../core/byte-source.ts';
export { createMemorySink, type ByteSink } from './header-writer.ts';
export type { GgufLimits } from './limits.ts';
export { createMetadata } from './metadata.ts';
export { openGguf } from './reader.ts';
export {
  openSafetensors,
  type SafetensorInfo,
  type SafetensorsDtype,
  type SafetensorsFile,
  type SafetensorsLimits,
} from './safetensors.ts';
export { openSplitGguf } from './split.ts';
export type {
  GgufFile,
  Metadata,
  MetadataArray,
  MetadataEntry,
  MetadataTypeName,
  MetadataValue,
  ScalarTypeName,
  TensorInfo,
} from './types.ts';
export { writeGguf, type GgufToWrite, type TensorToWrite } from './writer.ts';
export { convertibleModelTypes, convertSafetensors } from './convert/convert-checkpoint.ts';
export { convertLlama2c, type ConvertOptions } from './convert/llama2c.ts';
export { convertSafetensorsProjector } from './convert/safetensors-projector.ts';
export { type BertConvertOptions, convertSafetensorsBert } from './convert/safetensors-bert.ts';
export type { HfCheckpoint, HfConvertOptions } from './convert/hf-checkpoint.ts';
