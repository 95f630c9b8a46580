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
  /** Reasons why the default model cannot be loaded. */
  readonly defaultModelProblems: readonly string[];
  /** The best quantization of the default model that fits into memory; null: none or unknown. */
  readonly fittingQuant: string | null;
  readonly configError: string | null;
  readonly hasKeys: boolean;
  readonly host: string;
}

const GIBIBYTE = 2 ** 30;

/** Findings about this machine, problems first. */
export function advise(facts: Facts): Finding[] {
  const { kernels, kernelChoice, defaultModel, defaultModelBytes, cacheFreeBytes, availableMemoryBytes, host } = facts;
  const { numThreads, numCpus } = facts;
  const chosen = kernels.find(({ isChosen }) => isChosen)?.name;
  const reasonOf = (wanted: string): string | undefined => kernels.find(({ name }) => name === wanted)?.reason;
  const findings: Finding[] = [];
  const add = (level: Finding['level'], isFound: boolean, what: string, why: string, next: string): void => {
    if (isFound) findings.push({ level, what, why, next });
  };
  add(
    'problem',
    facts.configError !== null,
    `invalid settings: ${facts.configError}`,
    'most commands do not start with them',
    'ruvllm config path shows the file, ruvllm config schema its format',
  );
  add(
    'problem',
    chosen === undefined,
    `no "${kernelChoice}" kernels are usable on this machine`,
    reasonOf(kernelChoice) ?? 'none are available',
    'set RUVLLM_KERNELS=auto, or run npm run build:native',
  );
  add(
    'problem',
    defaultModel.choice === 'configured' && defaultModel.path === null,
    `the configured model ${defaultModel.reference} was not found`,
    'chat and serve without a model would fail or download it',
    `ruvllm pull ${defaultModel.reference}, or ruvllm config show to see where it is set`,
  );
  add(
    'problem',
    !facts.hasKeys && !/^(?:127\.|localhost$|::1$)/.test(host),
    `serve would listen on ${host} without API keys`,
    'other machines can reach that address, so serve refuses to start',
    'ruvllm keys create NAME',
  );
  add(
    'problem',
    cacheFreeBytes !== null && cacheFreeBytes < 2 * GIBIBYTE,
    `only ${formatBytes(cacheFreeBytes ?? 0)} are free in ${facts.cacheRoot}`,
    'a small model takes 0.5 GiB, a model of 7 billion parameters 4 GiB',
    'ruvllm list, then ruvllm rm MODEL',
  );
  add(
    'problem',
    (defaultModelBytes ?? 0) * 1.2 > availableMemoryBytes,
    `${defaultModel.reference} takes ${formatBytes(defaultModelBytes ?? 0)}; only ${formatBytes(availableMemoryBytes)} of memory are available`,
    'the system reads weights from disk repeatedly or kills the process',
    facts.fittingQuant === null
      ? 'ruvllm chat OTHER with a smaller model, or free memory'
      : `use its ${facts.fittingQuant} quantization, which fits, or free memory`,
  );
  add(
    'problem',
    facts.defaultModelProblems.length > 0,
    `${defaultModel.reference} cannot be loaded: ${facts.defaultModelProblems[0]}`,
    facts.defaultModelProblems.length > 1
      ? `and ${facts.defaultModelProblems.length - 1} more reasons`
      : 'this version cannot run it',
    `ruvllm show ${defaultModel.reference}`,
  );
  add(
    'advice',
    facts.numModels === 0 && defaultModel.path === null,
    'the cache has no models',
    'the first chat downloads one',
    `ruvllm pull ${defaultModel.reference}`,
  );
  add(
    'advice',
    chosen !== undefined && chosen !== 'native' && kernelChoice === 'auto',
    `native kernels are not used: ${reasonOf('native') ?? 'none for this processor'}`,
    `${chosen} kernels give the same results several times slower`,
    'npm run build:native (requires a C compiler; Debian: apt install gcc)',
  );
  add(
    'advice',
    chosen !== undefined && kernelChoice !== 'auto',
    `kernels are set to "${kernelChoice}"`,
    'a faster build would not be used',
    'ruvllm config show shows where load.kernels is set',
  );
  add(
    'advice',
    facts.amx === 'refused',
    'the processor has AMX, but the system denies it to this process',
    'AMX processes long prompts faster',
    'use Linux 5.16 or later; in a container, permit arch_prctl',
  );
  add(
    'advice',
    facts.largePages === 'never',
    'huge pages are off',
    'weights in 4 KiB pages cause more TLB misses',
    'echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled',
  );
  add(
    'advice',
    numThreads > numCpus,
    `${numThreads} compute threads share ${numCpus} CPUs`,
    'threads that wait for each other slow down every step',
    `ruvllm config show shows where load.threads is set; the default is ${numCpus}`,
  );
  return findings;
}
