import { existsSync } from 'node:fs';
import { describe, test } from 'vitest';
import { nodeGpu } from '../../platform/node/kernels/webgpu-platform.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { openGpu, requestAdapter } from './open-gpu.ts';
import { createWebGpuPackFactory } from './webgpu-pack.ts';

/** The software driver of Debian's chromium: any GPU may be missing where tests run. */
const SOFTWARE_DRIVER = '/usr/lib/chromium/vk_swiftshader_icd.json';

async function whyNoGpu(): Promise<string | null> {
  if (process.env['VK_ICD_FILENAMES'] === undefined && existsSync(SOFTWARE_DRIVER)) {
    process.env['VK_ICD_FILENAMES'] = SOFTWARE_DRIVER;
  }
  try {
    await requestAdapter(await nodeGpu());
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const reason = await whyNoGpu();
if (reason === null) {
  const factory = createWebGpuPackFactory(async () => openGpu(await nodeGpu()));
  describeKernelPack('webgpu', () => factory);
} else {
  console.log(`webgpu kernels are not tested: ${reason}`);
  describe('webgpu', () => test.skip(`requires a GPU: ${reason}`, () => {}));
}
