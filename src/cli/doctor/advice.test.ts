import { expect, test } from 'vitest';
import { advise, type Facts } from './advice.ts';

const native = { name: 'native', build: 'avx2', isUsable: true, reason: 'computes right', isChosen: true } as const;
const good: Facts = {
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
  configError: null,
  hasKeys: false,
  host: '127.0.0.1',
};

test('where all is well there is nothing to say', () => {
  expect(advise(good)).toEqual([]);
});

const missing = { ...good.defaultModel, path: null };
test.each<[string, Partial<Facts>, string, string, string]>([
  ['settings', { configError: 'x.json:3: unknown' }, 'problem', 'the settings cannot be used: x.json:3: unknown', 'ruvllm config path'],
  ['no kernels', { kernels: [{ ...native, isChosen: false, reason: 'it was not built' }], kernelChoice: 'native' }, 'problem', 'no kernels of the kind "native" can be used here', 'RUVLLM_KERNELS=auto'],
  ['configured', { defaultModel: { ...missing, choice: 'configured' } }, 'problem', 'the configured model o/m:Q4 is not here', 'ruvllm pull o/m:Q4'],
  ['host', { host: '0.0.0.0' }, 'problem', 'serve would listen on 0.0.0.0, and there are no API keys', 'ruvllm keys create NAME'],
  ['disk', { cacheFreeBytes: 2 ** 30 }, 'problem', '1.0 GiB are free in /c', 'ruvllm list, then ruvllm rm MODEL'],
  ['memory', { availableMemoryBytes: 1.1e9 }, 'problem', 'o/m:Q4 takes 954 MiB, and 1.0 GiB of memory are available', 'ruvllm chat OTHER'],
  ['no model', { numModels: 0, defaultModel: missing, defaultModelBytes: null }, 'advice', 'no model is here yet', 'ruvllm pull o/m:Q4'],
  ['wasm', { kernels: [{ ...native, isChosen: false, reason: 'not built: no cc' }, { ...native, name: 'wasm' }] }, 'advice', 'the native kernels are not used: not built: no cc', 'npm run build:native'],
  ['choice', { kernels: [{ ...native, name: 'wasm' }], kernelChoice: 'wasm' }, 'advice', 'the kernels are set to "wasm"', 'ruvllm config show'],
  ['amx', { amx: 'refused' }, 'advice', 'the processor has AMX, but the system does not let this process use it', 'a Linux of 5.16'],
  ['pages', { largePages: 'never' }, 'advice', 'large pages are off', 'echo madvise | sudo tee'],
  ['threads', { numThreads: 8 }, 'advice', '8 threads are to compute on 4 CPUs', 'ruvllm config show'],
])('%s: one finding with what, why and the next command', (_, change, level, what, next) => {
  const findings = advise({ ...good, ...change });
  expect(findings).toEqual([{ level, what, why: expect.stringMatching(/.{10}/), next: expect.stringContaining(next) }]);
}); // prettier-ignore

test('a server with keys may listen anywhere; problems come first', () => {
  expect(advise({ ...good, host: '0.0.0.0', hasKeys: true })).toEqual([]);
  const levels = advise({ ...good, largePages: 'never', cacheFreeBytes: 0 }).map(({ level }) => level);
  expect(levels).toEqual(['problem', 'advice']);
});
