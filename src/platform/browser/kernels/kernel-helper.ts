// A compute thread of the WASM pack, a file of its own because a strict content security policy allows no code in strings.
import type { HelperStart } from '../../../kernels/wasm/platform.ts';
import { workerScope } from '../worker-scope.ts';

interface HelperExports {
  help(scratch: number | bigint, started: number | bigint): void;
  abandon(): void;
}

workerScope.addEventListener('message', ({ data }) => {
  const { module, memory, scratch, started } = data as HelperStart;
  const { help, abandon } = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as HelperExports;
  try {
    help(scratch, started);
  } catch (error) {
    abandon();
    throw error;
  }
});
