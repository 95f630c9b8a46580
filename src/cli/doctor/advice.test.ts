import { expect, test } from 'vitest';
import { advise, type Facts } from './advice.ts';

const native = {
  name: 'native',
  build: 'avx2',
  isUsable: true,
  reason: 'passes the self-test',
  isChosen: true,
} as const;
const healthy: Facts = {
  kernels: [native],
  kernelChoice: 'auto',
  amx: 'permitted',
  largePages: 'madvise',
  numThreads: 4,
  numCpus: 4,
  availableMemoryBytes: 8e9,
  cacheRoot: '/c',
  cacheFreeBytes: 1e11,
  numModels: 1,
  defaultModel: { reference: 'o/m:Q4', path: '/c/m.gguf', choice: 'cached' },
  defaultModelBytes: 1e9,
  defaultModelProblems: [],
  fittingQuant: null,
  configError: null,
  hasKeys: false,
  host: '127.0.0.1',
};

test('reports nothing for a healthy machine', () => {
  expect(advise(healthy)).toEqual([]);
});

const missing = { ...healthy.defaultModel, path: null };
test.each<[string, Partial<Facts>, string, string, string]>([
  ['settings', { configError: 'x.json:3: unknown' }, 'problem', 'invalid settings: x.json:3: unknown', 'ruvllm config path'],
  ['no kernels', { kernels: [{ ...native, isChosen: false, reason: 'it was not built' }], kernelChoice: 'native' }, 'problem', 'no "native" kernels are usable on this machine', 'RUVLLM_KERNELS=auto'],
  ['configured', { defaultModel: { ...missing, choice: 'configured' } }, 'problem', 'the configured model o/m:Q4 was not found', 'ruvllm pull o/m:Q4'],
  ['host', { host: '0.0.0.0' }, 'problem', 'serve would listen on 0.0.0.0 without API keys', 'ruvllm keys create NAME'],
  ['disk', { cacheFreeBytes: 2 ** 30 }, 'problem', 'only 1.0 GiB are free in /c', 'ruvllm list, then ruvllm rm MODEL'],
  ['memory', { availableMemoryBytes: 1.1e9 }, 'problem', 'o/m:Q4 takes 954 MiB; only 1.0 GiB of memory are available', 'ruvllm chat OTHER'],
  ['quantization', { availableMemoryBytes: 1.1e9, fittingQuant: 'Q4_0' }, 'problem', 'o/m:Q4 takes 954 MiB; only 1.0 GiB of memory are available', 'use its Q4_0 quantization'],
  ['unloadable', { defaultModelProblems: ['tensor type 77 is not supported', 'x'] }, 'problem', 'o/m:Q4 cannot be loaded: tensor type 77 is not supported', 'ruvllm show o/m:Q4'],
  ['no model', { numModels: 0, defaultModel: missing, defaultModelBytes: null }, 'advice', 'the cache has no models', 'ruvllm pull o/m:Q4'],
  ['wasm', { kernels: [{ ...native, isChosen: false, reason: 'not built: no cc' }, { ...native, name: 'wasm' }] }, 'advice', 'native kernels are not used: not built: no cc', 'npm run build:native'],
  ['choice', { kernels: [{ ...native, name: 'wasm' }], kernelChoice: 'wasm' }, 'advice', 'kernels are set to "wasm"', 'ruvllm config show'],
  ['amx', { amx: 'refused' }, 'advice', 'the processor has AMX, but the system denies it to this process', 'Linux 5.16 or later'],
  ['pages', { largePages: 'never' }, 'advice', 'huge pages are off', 'echo madvise | sudo tee'],
  ['threads', { numThreads: 8 }, 'advice', '8 compute threads share 4 CPUs', 'ruvllm config show'],
])('%s: reports one finding with what, why and next', (_, change, level, what, next) => {
  const findings = advise({ ...healthy, ...change });
  expect(findings).toEqual([{ level, what, why: expect.stringMatching(/.{10}/), next: expect.stringContaining(next) }]);
}); // prettier-ignore

test('accepts any host with API keys; lists problems before advice', () => {
  expect(advise({ ...healthy, host: '0.0.0.0', hasKeys: true })).toEqual([]);
  const levels = advise({ ...healthy, largePages: 'never', cacheFreeBytes: 0 }).map(({ level }) => level);
  expect(levels).toEqual(['problem', 'advice']);
});
