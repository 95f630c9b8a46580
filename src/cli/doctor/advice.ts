import { formatBytes } from '../format.ts';
import type { KernelReport } from '../kernel-report.ts';

export interface Finding {
  /** `problem`: something does not work. `advice`: something could be faster. */
  readonly level: 'problem' | 'advice';
  readonly what: string;
  readonly why: string;
  readonly next: string;
}

export interface Facts {
  readonly kernels: readonly KernelReport[];
  readonly kernelChoice: string;
  readonly amx: string;
  readonly largePages: string | null;
  readonly numThreads: number;
  readonly numCpus: number;
  readonly availableMemoryBytes: number;
  readonly cacheRoot: string;
  readonly cacheFreeBytes: number | null;
  readonly numModels: number;
  readonly defaultModel: { readonly reference: string; readonly path: string | null; readonly choice: string };
  readonly defaultModelBytes: number | null;
  readonly configError: string | null;
  readonly hasKeys: boolean;
  readonly host: string;
}

const GIBIBYTE = 2 ** 30;

type Check = (facts: Facts) => Finding | null;

const CHECKS: readonly Check[] = [
  ({ configError }) =>
    configError === null
      ? null
      : {
          level: 'problem',
          what: `invalid settings: ${configError}`,
          why: 'most commands do not start with them',
          next: 'ruvllm config path shows the file, ruvllm config schema its format',
        },
  ({ kernels, kernelChoice }) =>
    kernels.some(({ isChosen }) => isChosen)
      ? null
      : {
          level: 'problem',
          what: `no "${kernelChoice}" kernels are usable on this machine`,
          why: kernels.find(({ name }) => name === kernelChoice)?.reason ?? 'none are available',
          next: 'set RUVLLM_KERNELS=auto, or run npm run build:native',
        },
  ({ defaultModel: { choice, path, reference } }) =>
    choice !== 'configured' || path !== null
      ? null
      : {
          level: 'problem',
          what: `the configured model ${reference} was not found`,
          why: 'chat and serve without a model would fail or download it',
          next: `ruvllm pull ${reference}, or ruvllm config show to see where it is set`,
        },
  ({ host, hasKeys }) =>
    hasKeys || /^(?:127\.|localhost$|::1$)/.test(host)
      ? null
      : {
          level: 'problem',
          what: `serve would listen on ${host} without API keys`,
          why: 'other machines can reach that address, so serve refuses to start',
          next: 'ruvllm keys create NAME',
        },
  ({ cacheFreeBytes, cacheRoot }) =>
    cacheFreeBytes === null || cacheFreeBytes >= 2 * GIBIBYTE
      ? null
      : {
          level: 'problem',
          what: `only ${formatBytes(cacheFreeBytes)} are free in ${cacheRoot}`,
          why: 'a small model takes 0.5 GiB, a model of 7 billion parameters 4 GiB',
          next: 'ruvllm list, then ruvllm rm MODEL',
        },
  ({ defaultModelBytes, availableMemoryBytes, defaultModel }) =>
    defaultModelBytes === null || defaultModelBytes * 1.2 <= availableMemoryBytes
      ? null
      : {
          level: 'problem',
          what: `${defaultModel.reference} takes ${formatBytes(defaultModelBytes)}; only ${formatBytes(availableMemoryBytes)} of memory are available`,
          why: 'the system reads weights from disk repeatedly or kills the process',
          next: 'ruvllm chat OTHER with a smaller model, or free memory',
        },
  ({ numModels, defaultModel }) =>
    numModels > 0 || defaultModel.path !== null
      ? null
      : {
          level: 'advice',
          what: 'the cache has no models',
          why: 'the first chat downloads one',
          next: `ruvllm pull ${defaultModel.reference}`,
        },
  ({ kernels, kernelChoice }) => {
    const chosen = kernels.find(({ isChosen }) => isChosen);
    if (chosen === undefined || chosen.name === 'native' || kernelChoice !== 'auto') return null;
    const reason = kernels.find(({ name }) => name === 'native')?.reason ?? 'none for this processor';
    return {
      level: 'advice',
      what: `native kernels are not used: ${reason}`,
      why: `${chosen.name} kernels give the same results several times slower`,
      next: 'npm run build:native (requires a C compiler; Debian: apt install gcc)',
    };
  },
  ({ kernelChoice, kernels }) =>
    kernelChoice === 'auto' || !kernels.some(({ isChosen }) => isChosen)
      ? null
      : {
          level: 'advice',
          what: `kernels are set to "${kernelChoice}"`,
          why: 'a faster build would not be used',
          next: 'ruvllm config show shows where load.kernels is set',
        },
  ({ amx }) =>
    amx !== 'refused'
      ? null
      : {
          level: 'advice',
          what: 'the processor has AMX, but the system denies it to this process',
          why: 'AMX processes long prompts faster',
          next: 'use Linux 5.16 or later; in a container, permit arch_prctl',
        },
  ({ largePages }) =>
    largePages !== 'never'
      ? null
      : {
          level: 'advice',
          what: 'large pages are off',
          why: 'weights in 4 KiB pages cause more TLB misses',
          next: 'echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled',
        },
  ({ numThreads, numCpus }) =>
    numThreads <= numCpus
      ? null
      : {
          level: 'advice',
          what: `${numThreads} compute threads share ${numCpus} CPUs`,
          why: 'threads that wait for each other slow down every step',
          next: `ruvllm config show shows where load.threads is set; the default is ${numCpus}`,
        },
];

/** Findings about this machine, problems first. */
export function advise(facts: Facts): Finding[] {
  const findings = CHECKS.map((check) => check(facts)).filter((finding) => finding !== null);
  return findings.toSorted((a, b) => Number(a.level === 'advice') - Number(b.level === 'advice'));
}
