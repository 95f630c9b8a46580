import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { NativeAddon, NativeBuild } from '../../kernels/native/native-pack.ts';

// Three folders up from both src/platform/node and dist/platform/node.
const PREBUILDS = new URL(`../../../prebuilds/${process.platform}-${process.arch}/`, import.meta.url);

/** Builds from best to plainest, with what the processor must have. */
const BUILDS = [
  { build: 'amx', needs: 'amx' },
  { build: 'avx512vnni', needs: 'avx512vnni' },
  { build: 'avx2', needs: 'avx2' },
  { build: 'baseline', needs: null },
] as const;

const load = (build: string): (NativeAddon & { cpuFeatures(): string[] }) | null => {
  const file = fileURLToPath(new URL(`ruvllm-${build}.node`, PREBUILDS));
  return existsSync(file) ? createRequire(import.meta.url)(file) : null;
};

/** The native kernels this processor can run, best first; empty where none were built. */
export function loadNativeBuilds(): NativeBuild[] {
  const baseline = load('baseline');
  if (baseline === null) return [];
  const features = new Set(baseline.cpuFeatures());
  return BUILDS.flatMap(({ build, needs }) => {
    const addon = needs === null || features.has(needs) ? load(build) : null;
    return addon === null ? [] : [{ addon, build }];
  });
}
