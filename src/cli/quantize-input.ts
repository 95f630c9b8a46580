import type { TextModelOptions } from '../node/quantize/text-model.ts';
import { readSystemInfo } from '../platform/node/process/system-info.ts';
import { resolveModelConfig } from '../runtime/model-config.ts';
import type { CliIo } from './io.ts';
import { readModelConfig } from './load-flags.ts';
import { readRegularFile } from '../platform/node/files/json-file.ts';

/** The kernels and threads for running a model without a server. */
export function readRunOptions(io: CliIo): TextModelOptions {
  const { kernels, numThreads } = resolveModelConfig(readModelConfig({}, io.environment), {
    numCpus: readSystemInfo().numCpus,
  });
  return { kernels, numThreads };
}

/** A text file that a model is run on. */
export function readCalibrationText(path: string): string {
  return new TextDecoder().decode(readRegularFile(path));
}
