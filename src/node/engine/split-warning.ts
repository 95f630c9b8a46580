import type { ModelSpec } from '../../engine/protocol.ts';
import type { LayerSplitReport } from '../../models/types.ts';

/** Who asks for the GPU and does not choose a number of layers should learn that it computes none. */
export function splitWarning(
  { gpuLayers, gpuMemoryBytes }: Pick<ModelSpec, 'gpuLayers' | 'gpuMemoryBytes'>,
  split: LayerSplitReport | undefined,
): string | null {
  if (gpuLayers !== 'auto' || split === undefined || split.numGpuLayers > 0) return null;
  const limit = gpuMemoryBytes === null ? 'its largest buffer' : `${gpuMemoryBytes} bytes`;
  return `no layer of the model fits into ${limit} on the GPU: the processor computes all ${split.numLayers}`;
}
