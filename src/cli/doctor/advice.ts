import { formatBytes } from '../format.ts';
import type { KernelReport } from '../kernel-report.ts';

/** Something that could be better: what it is, why it matters, and the next command. */
export interface Finding {
  /** `problem`: something does not work. `advice`: it works, and could work better. */
  readonly level: 'problem' | 'advice';
  readonly what: string;
  readonly why: string;
  readonly next: string;
}

/** What the findings are drawn from. */
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

/** Each looks at one thing; problems come before advice. */
const CHECKS: readonly Check[] = [
  ({ configError }) =>
    configError === null
      ? null
      : {
          level: 'problem',
          what: `the settings cannot be used: ${configError}`,
          why: 'every other command refuses to start with them',
          next: 'ruvllm config path shows the file; ruvllm config schema what it may hold',
        },
  ({ kernels, kernelChoice }) =>
    kernels.some(({ isChosen }) => isChosen)
      ? null
      : {
          level: 'problem',
          what: `no kernels of the kind "${kernelChoice}" can be used here`,
          why: kernels.find(({ name }) => name === kernelChoice)?.reason ?? 'there are none',
          next: 'RUVLLM_KERNELS=auto with the same command, or npm run build:native',
        },
  ({ defaultModel: { choice, path, reference } }) =>
    choice !== 'configured' || path !== null
      ? null
      : {
          level: 'problem',
          what: `the configured model ${reference} is not here`,
          why: 'chat and serve without a model would fail or download it',
          next: `ruvllm pull ${reference}, or ruvllm config show to see who asks for it`,
        },
  ({ host, hasKeys }) =>
    hasKeys || /^(?:127\.|localhost$|::1$)/.test(host)
      ? null
      : {
          level: 'problem',
          what: `serve would listen on ${host}, and there are no API keys`,
          why: 'other machines can reach that address, so serve refuses to start without keys',
          next: 'ruvllm keys create NAME',
        },
  ({ cacheFreeBytes, cacheRoot }) =>
    cacheFreeBytes === null || cacheFreeBytes >= 2 * GIBIBYTE
      ? null
      : {
          level: 'problem',
          what: `${formatBytes(cacheFreeBytes)} are free in ${cacheRoot}`,
          why: 'a small model takes half a GiB, one of 7 billion parameters four',
          next: 'ruvllm list, then ruvllm rm MODEL',
        },
  ({ defaultModelBytes, availableMemoryBytes, defaultModel }) =>
    defaultModelBytes === null || defaultModelBytes * 1.2 <= availableMemoryBytes
      ? null
      : {
          level: 'problem',
          what: `${defaultModel.reference} takes ${formatBytes(defaultModelBytes)}, and ${formatBytes(availableMemoryBytes)} of memory are available`,
          why: 'weights that do not fit are read from disk again and again, or the system ends the process',
          next: 'ruvllm chat OTHER with a smaller model, or end what takes the memory',
        },
  ({ numModels, defaultModel }) =>
    numModels > 0 || defaultModel.path !== null
      ? null
      : {
          level: 'advice',
          what: 'no model is here yet',
          why: 'the first chat downloads one',
          next: `ruvllm pull ${defaultModel.reference}`,
        },
  ({ kernels, kernelChoice }) => {
    const chosen = kernels.find(({ isChosen }) => isChosen);
    if (chosen === undefined || chosen.name === 'native' || kernelChoice !== 'auto') return null;
    const reason = kernels.find(({ name }) => name === 'native')?.reason ?? 'there are none for this processor';
    return {
      level: 'advice',
      what: `the native kernels are not used: ${reason}`,
      why: `${chosen.name} kernels compute the same, several times slower`,
      next: 'npm run build:native, which needs a C compiler (Debian: apt install gcc)',
    };
  },
  ({ kernelChoice, kernels }) =>
    kernelChoice === 'auto' || !kernels.some(({ isChosen }) => isChosen)
      ? null
      : {
          level: 'advice',
          what: `the kernels are set to "${kernelChoice}"`,
          why: 'a faster build would not be noticed',
          next: 'ruvllm config show tells who sets load.kernels',
        },
  ({ amx }) =>
    amx !== 'refused'
      ? null
      : {
          level: 'advice',
          what: 'the processor has AMX, but the system does not let this process use it',
          why: 'long prompts would be read faster with it',
          next: 'a Linux of 5.16 or later, and in a container one that permits arch_prctl',
        },
  ({ largePages }) =>
    largePages !== 'never'
      ? null
      : {
          level: 'advice',
          what: 'large pages are off',
          why: 'weights then lie in pages of 4 KiB, and finding them takes time',
          next: 'echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled',
        },
  ({ numThreads, numCpus }) =>
    numThreads <= numCpus
      ? null
      : {
          level: 'advice',
          what: `${numThreads} threads are to compute on ${numCpus} CPUs`,
          why: 'threads that wait for each other make every step slower',
          next: `ruvllm config show tells who sets load.threads; ${numCpus} is the default`,
        },
];

/** What could be better on this machine, problems first. */
export function advise(facts: Facts): Finding[] {
  const found = CHECKS.map((check) => check(facts)).filter((finding) => finding !== null);
  return [...found.filter(({ level }) => level === 'problem'), ...found.filter(({ level }) => level === 'advice')];
}
