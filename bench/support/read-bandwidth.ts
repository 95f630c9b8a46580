import { importBuilt } from './dist.ts';

const { nodeGpu } = await importBuilt<typeof import('../../src/platform/node/kernels/webgpu-platform.ts')>('platform/node/kernels/webgpu-platform'); // prettier-ignore
const { openGpu } = await importBuilt<typeof import('../../src/kernels/webgpu/open-gpu.ts')>('kernels/webgpu/open-gpu'); // prettier-ignore
const { BUFFER_USAGE } = await importBuilt<typeof import('../../src/kernels/webgpu/gpu.ts')>('kernels/webgpu/gpu'); // prettier-ignore

const GROUPS = 8192;
const CODE = `
@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var sum = vec4<u32>(0u);
  for (var i = id.x; i < arrayLength(&source); i += ${GROUPS * 256}u) { sum ^= source[i]; }
  let all = sum.x ^ sum.y ^ sum.z ^ sum.w;
  if (all != 0u) { sums[id.x % 64u] = all; }
}`;

/** Bytes per second at which a shader reads a large buffer: the best of several runs. */
export async function measureReadBandwidth(wantedBytes: number): Promise<number> {
  const { device } = await openGpu(await nodeGpu());
  const most = Math.min(device.limits['maxStorageBufferBindingSize']!, device.limits['maxBufferSize']!);
  const size = Math.min(wantedBytes, Math.floor(most / 256) * 256);
  const source = device.createBuffer({ size, usage: BUFFER_USAGE.storage });
  const sums = device.createBuffer({ size: 256, usage: BUFFER_USAGE.storage });
  const layout = device.createBindGroupLayout({
    entries: [
      { binding: 0, visibility: 4, buffer: { type: 'read-only-storage' } },
      { binding: 1, visibility: 4, buffer: { type: 'storage' } },
    ],
  });
  const pipeline = device.createComputePipeline({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ code: CODE }), entryPoint: 'main' },
  });
  const entries = [source, sums].map((buffer, binding) => ({ binding, resource: { buffer } }));
  const group = device.createBindGroup({ layout, entries });
  const run = async (times: number): Promise<number> => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group, []);
    for (let i = 0; i < times; i++) pass.dispatchWorkgroups(GROUPS);
    pass.end();
    const start = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    return performance.now() - start;
  };
  await run(2);
  let best = 0;
  for (let round = 0; round < 5; round++) {
    const [few, many] = [await run(2), await run(10)];
    best = Math.max(best, (8 * size * 1000) / Math.max(1e-3, many - few));
  }
  device.destroy();
  return best;
}
