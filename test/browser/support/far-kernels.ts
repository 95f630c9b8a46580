// A worker of a page: the contract suite of kernel packs on memory beyond 4 GiB. Bundled by bundle-page-tests.ts.
import { createFarFactory } from '../../../src/kernels/wasm/far-factory.contract.ts';
import type { WasmModule } from '../../../src/kernels/wasm/platform.ts';
import { createWasmPackFactory } from '../../../src/kernels/wasm/wasm-pack.ts';
import { describeKernelPack } from '../../../src/kernels/pack.contract.ts';
import { createBrowserWasmPlatform } from '../../../src/platform/browser/kernels/wasm-platform.ts';
import { runTests } from './page-vitest.ts';

const platform = createBrowserWasmPlatform();
/** `plain`: the build that this browser would not choose, too. `each=4`: each fourth test. */
const parameters = new URLSearchParams(location.search);
const builds: readonly WasmModule['build'][] = parameters.has('plain') ? ['relaxed-simd', 'simd128'] : ['relaxed-simd'];
const names: string[] = [];

/** The chosen build, and the plain one, which this browser would not choose. */
async function loadPlain(): Promise<WasmModule> {
  const module = await WebAssembly.compileStreaming(fetch(new URL('./kernels.simd64.wasm', import.meta.url)));
  return { module, build: 'simd128' };
}

for (const build of builds) {
  const own = build === 'simd128' ? { ...platform, loadModule: loadPlain } : platform;
  const factory = createFarFactory(createWasmPackFactory(own));
  const watched = {
    ...factory,
    async create(...args: Parameters<typeof factory.create>) {
      const pack = await factory.create(...args);
      names.push(pack.name);
      return pack;
    },
  };
  describeKernelPack(build, () => watched);
}

postMessage({ ...(await runTests(Number(parameters.get('each') ?? 1))), names: [...new Set(names)] });
