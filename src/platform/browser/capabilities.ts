import { RuvLLMError } from '../../core/errors.ts';
import { hasMemory64 } from '../../kernels/wasm/memory64.ts';

/** Features of this page that decide how the engine runs. */
export interface BrowserCapabilities {
  /** The page is cross-origin isolated (COOP and COEP headers), so that threads can share memory. */
  readonly isIsolated: boolean;
  /** Compute threads of a model by default: 1 without isolation. */
  readonly numThreads: number;
  /** Whether a model and its buffers may take more than 4 GiB, up to 16 GiB (WebAssembly Memory64). */
  readonly hasMemory64: boolean;
  /** Whether models, pages and memory can be stored (the origin-private file system). */
  readonly hasStorage: boolean;
  /** Whether tabs can tell that another one has the same data open (Web Locks). */
  readonly hasLocks: boolean;
}

/** `(module (func (result v128) (i8x16.splat (i32.const 0))))`: valid where WebAssembly has SIMD. */
const SIMD_PROBE = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11); // prettier-ignore

/** Reads the features of this page or worker. */
export function detectCapabilities(): BrowserCapabilities {
  const isIsolated = globalThis.crossOriginIsolated === true && typeof SharedArrayBuffer === 'function';
  return {
    isIsolated,
    numThreads: isIsolated ? Math.max(1, navigator.hardwareConcurrency) : 1,
    hasMemory64: hasMemory64(),
    hasStorage: typeof navigator.storage?.getDirectory === 'function',
    hasLocks: navigator.locks !== undefined,
  };
}

/** `unsupported`, with the missing feature, unless the engine can run here. */
export function requireCapabilities(): BrowserCapabilities {
  const capabilities = detectCapabilities();
  const missing = [
    typeof WebAssembly === 'object' && WebAssembly.validate(SIMD_PROBE) ? null : 'WebAssembly SIMD',
    capabilities.hasStorage ? null : 'the origin-private file system (a secure context: https or localhost)',
    capabilities.hasLocks ? null : 'Web Locks',
  ].filter((feature) => feature !== null);
  if (missing.length === 0) return capabilities;
  throw new RuvLLMError('unsupported', `this browser or page lacks ${missing.join(' and ')}`, { data: { missing } });
}
